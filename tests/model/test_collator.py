"""One's own fine-tuning: any transformers model of the encoder, an ordinary training loop, and the collator."""

import pickle

import pytest
import torch
import transformers
from architectures import ARCHITECTURES
from torch.utils.data import DataLoader

from ebert import EBert, EbertError, Passage
from ebert.bert.load import quiet

# Sentences that differ by their entity only: what the wordpieces say does not help.
EXAMPLES = [
    {"passage": f"[[{title}|He]] lives in {city} .", "label": label}
    for city in ("Rome", "Paris", "Madrid")
    for title, label in (("Jean Marais", 0), ("Beyoncé", 1), ("Zürich", 0), ("C++", 1))
]


def classifier(folder: str) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    with quiet():
        return transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()


def train(module, loader: DataLoader, epochs: int) -> list[float]:
    """Train the ordinary way, but without dropout, and give the mean loss of every epoch."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3, weight_decay=0.0)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for batch in loader:
            loss = module(**batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        losses.append(total)
    return losses


def frozen(module) -> list[bool]:
    return [p.grad is None for name, p in module.named_parameters() if "word_embed" in name or "tok_embed" in name]


def test_a_batch(architecture, model):
    collate = model.collator(mode="replace")
    batch = collate([*EXAMPLES[:2], {"passage": Passage("He is"), "label": 1}])
    assert set(batch) == {"inputs_embeds", "attention_mask", "position_ids", "labels"}
    assert batch["labels"].tolist() == [0, 1, 1]
    lengths = [len(model.pieces(e["passage"], mode="replace")) for e in EXAMPLES[:2]]
    assert batch["attention_mask"].sum(dim=1).tolist()[:2] == lengths
    assert batch["inputs_embeds"].shape == (3, max(lengths), architecture.width)
    assert batch["inputs_embeds"].dtype == torch.float32
    assert not batch["inputs_embeds"].requires_grad
    place = model.pieces(EXAMPLES[0]["passage"], mode="replace").index("Jean_Marais")
    torch.testing.assert_close(batch["inputs_embeds"][0, place], model.project(["Jean Marais"])[0])


def test_columns_of_all_kinds(tiny):
    collate = tiny.model("bert").collator(mode="concat")
    batch = collate([{"passage": "a", "weight": 0.5, "labels": torch.tensor([1, 2])}] * 2)
    assert batch["weight"].tolist() == [0.5, 0.5]
    assert batch["weight"].dtype == torch.float32
    assert batch["labels"].tolist() == [[1, 2], [1, 2]]
    assert set(collate(["[[Paris]]", Passage("in Rome")])) == {"inputs_embeds", "attention_mask", "position_ids"}
    for examples in ([{"text": "a", "label": 1}], [{"passage": "a", "label": 1}, {"passage": "b"}]):
        with pytest.raises(EbertError, match="every example needs a 'passage'"):
            collate(examples)
    with pytest.raises(EbertError, match="without examples"):
        collate([])
    collate(["[[Nobody]] and [[Paris]]"])
    assert collate.missing == {"Nobody": 1}
    with pytest.raises(EbertError, match="unknown mode 'both'"):
        tiny.model("bert").collator(mode="both")


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in ("bert-uncased", "deberta-v3")])
def test_fine_tuning_learns_from_the_entities_alone(tiny, name):
    module = classifier(tiny.folder(name))
    before = module.get_input_embeddings().weight.detach().clone()
    loader = DataLoader(EXAMPLES, batch_size=6, collate_fn=tiny.model(name).collator(mode="concat"))
    losses = train(module, loader, 30)
    assert losses[-1] < 0.05 < 0.3 < losses[0]
    assert frozen(module) == [True]
    assert module.get_input_embeddings().weight.equal(before)


def test_without_entities_there_is_nothing_to_learn(tiny):
    module = classifier(tiny.folder("bert"))
    loader = DataLoader(EXAMPLES, batch_size=len(EXAMPLES), collate_fn=tiny.model("bert").collator(mode="bert"))
    assert train(module, loader, 30)[-1] > 0.5


def test_workers_give_the_batches_of_one_process(tiny):
    collate = tiny.model("roberta").collator(mode="concat")
    alone = list(DataLoader(EXAMPLES, batch_size=3, collate_fn=collate))
    loader = DataLoader(EXAMPLES, batch_size=3, collate_fn=collate, num_workers=2)
    for _ in range(2):  # the store is still there after the workers have gone
        together = list(loader)
        assert len(together) == len(alone) == 4
        for ours, theirs in zip(together, alone, strict=True):
            assert ours.keys() == theirs.keys()
            assert all(ours[key].equal(theirs[key]) for key in ours)


def test_what_is_sent_to_a_worker(model):
    """The store stays where it is, and the layers of the encoder stay behind."""
    collate = model.collator(mode="concat")
    sent = pickle.dumps(collate)
    again = pickle.loads(sent)
    wanted, given = collate(EXAMPLES[:3]), again(EXAMPLES[:3])
    assert all(given[key].equal(wanted[key]) for key in wanted)
    assert b"word_embeddings.weight" not in sent
    assert b"modeling_" not in sent


def test_the_collator_stays_on_the_cpu_in_single_precision(tiny):
    model = EBert.fit(tiny.folder("distilbert"), tiny.vectors)
    collate = model.collator(mode="concat")
    wanted = collate(EXAMPLES[:2])["inputs_embeds"]
    model.to(dtype=torch.float64)
    assert collate(EXAMPLES[:2])["inputs_embeds"].equal(wanted)
    with torch.no_grad():
        model.encoder.get_input_embeddings().weight.zero_()  # what happens to the encoder does not reach it
    assert collate(EXAMPLES[:2])["inputs_embeds"].equal(wanted)


def test_with_the_trainer_of_transformers(tiny, tmp_path):
    pytest.importorskip("accelerate")
    module = classifier(tiny.folder("bert"))
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=30, per_device_train_batch_size=6, learning_rate=3e-3,
        remove_unused_columns=False, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    collate = tiny.model("bert").collator(mode="concat")
    trainer = transformers.Trainer(model=module, args=options, train_dataset=EXAMPLES, data_collator=collate)
    trainer.train()
    module.eval()
    with torch.inference_mode():
        answers = module(**collate([{"passage": e["passage"]} for e in EXAMPLES])).logits.argmax(-1).tolist()
    assert answers == [e["label"] for e in EXAMPLES]
