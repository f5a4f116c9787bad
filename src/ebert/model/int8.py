"""Faster on a CPU: the encoder's matrix products in 8-bit integers.

Weights are rounded channel by channel once, inputs row by row as they come (dynamic quantisation, which needs no data
to calibrate with). Embeddings, layer norms and the MLM head, which runs on masks only, stay in float32.
"""

import warnings

from torch import nn

from ebert.errors import EbertError
from ebert.model.ebert import EBert


def quantize(model: EBert) -> EBert:
    """Turn the encoder's linear layers into 8-bit ones, in place. There is no way back but loading it again."""
    if model.encoder.device.type != "cpu":
        raise EbertError("8-bit inference is for CPUs; on a GPU use --precision float16 or bfloat16")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is to move to another package some day
            from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
    except ImportError:
        raise EbertError(
            "this version of torch has no dynamic quantisation any more; use --precision float32, or an older torch"
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_dynamic(  # type: ignore[no-untyped-call]
            model.encoder.base_model, {nn.Linear: per_channel_dynamic_qconfig}, inplace=True
        )
    return model
