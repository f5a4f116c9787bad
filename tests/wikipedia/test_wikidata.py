"""Wikidata ids of a corpus, from SQL dumps as MySQL and MariaDB write them, and from tables."""

import bz2
import gzip

import pytest
from dump_files import Page, xml
from hypothesis import given
from hypothesis import strategies as st

from ebert.errors import EbertError
from ebert.wikipedia import wikidata
from ebert.wikipedia.build import build_corpus

PAGE = """-- MariaDB dump 10.19  Distrib 10.5.23-MariaDB
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `page`;
CREATE TABLE `page` (
  `page_id` int(8) unsigned NOT NULL AUTO_INCREMENT,
  `page_namespace` int(11) NOT NULL DEFAULT 0,
  `page_title` varbinary(255) NOT NULL DEFAULT '',
  `page_is_redirect` tinyint(1) unsigned NOT NULL DEFAULT 0,
  `page_random` double unsigned NOT NULL DEFAULT 0,
  `page_content_model` varbinary(32) DEFAULT NULL,
  PRIMARY KEY (`page_id`),
  UNIQUE KEY `page_name_title` (`page_namespace`,`page_title`)
) ENGINE=InnoDB AUTO_INCREMENT=79 DEFAULT CHARSET=binary;
LOCK TABLES `page` WRITE;
INSERT INTO `page` VALUES (1,0,'Jean_Marais',0,0.5,'wikitext'),(2,1,'Paris',0,0.1,NULL),(3,0,'Rock_\\'n\\'_Roll_(\\"Live\\"),\\\\_(1)',0,1e-05,'wikitext');
INSERT INTO `page` VALUES (4,0,'Paris',0,0.33,'wikitext'),(5,0,'Köln',0,0.33,NULL),(6,0,'Not_in_the_corpus',0,0.3,NULL);
UNLOCK TABLES;
"""  # noqa: E501

PROPS = """CREATE TABLE `page_props` (
  `pp_page` int(10) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`)
);
INSERT INTO `page_props` VALUES
(1,'defaultsort','Marais, Jean),(4,\\'wikibase_item\\',\\'Q1\\',NULL',NULL),
(1,'wikibase_item','Q168359',NULL),
(2,'wikibase_item','Q2',NULL),
(3,'wikibase_item','Q3',NULL),
(4,'wikibase_item','Q90',NULL),(6,'wikibase_item','Q6',NULL);
INSERT INTO `other` VALUES (5,'wikibase_item','Q5',NULL);
"""


@pytest.fixture
def corpus(tmp_path):
    titles = ["Jean Marais", "Paris", "Köln", "Rock 'n' Roll (\"Live\"),\\ (1)", "Q1"]
    (tmp_path / "a.xml").write_bytes(xml([Page(title, "text") for title in titles]))
    return build_corpus([tmp_path / "a.xml"], tmp_path / "corpus", threads=1)


@pytest.fixture
def from_sql(corpus, tmp_path):
    def read(page=PAGE, props=PROPS, pack=bytes):
        (tmp_path / "page.sql").write_bytes(pack(page.encode()))
        (tmp_path / "props.sql").write_bytes(pack(props.encode()))
        return wikidata.from_sql(corpus, tmp_path / "page.sql", tmp_path / "props.sql")

    return read


EXPECTED = {"Jean Marais": 168359, "Paris": 90, "Rock 'n' Roll (\"Live\"),\\ (1)": 3}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_ids_from_sql_dumps(corpus, from_sql, pack):
    ids = from_sql(pack=pack)
    assert ids.found == EXPECTED
    assert (ids.elsewhere, ids.twice, ids.bad) == (2, 0, 0)  # Talk:Paris and the title the corpus does not have
    wikidata.write(corpus, ids)
    assert corpus.wikidata() == EXPECTED
    assert "Jean Marais\tQ168359\n" in (corpus.path / "wikidata.tsv").read_text(encoding="utf-8")


def test_columns_in_another_order(from_sql):
    page = PAGE.replace("`page_id` int(8) unsigned NOT NULL AUTO_INCREMENT,\n", "`page_title` varbinary(255),\n")
    page = page.replace("  `page_title` varbinary(255) NOT NULL DEFAULT '',\n", "  `page_id` int(8) unsigned,\n")
    page = page.replace("(1,0,'Jean_Marais',", "('Jean_Marais',0,1,").replace("(4,0,'Paris',", "('Paris',0,4,")
    assert {title: from_sql(page).found.get(title) for title in ("Jean Marais", "Paris")} == {
        "Jean Marais": 168359, "Paris": 90,
    }  # fmt: skip


def test_columns_named_in_the_insert(from_sql):
    page = (
        PAGE.partition("INSERT")[0]
        + "INSERT INTO `page` (`page_title`, `page_id`, page_namespace) VALUES ('Paris', 4, 0);"
    )
    assert from_sql(page).found == {"Paris": 90}


def test_bad_rows_are_counted_and_shown(from_sql):
    page = PAGE.replace("(4,0,'Paris',0,0.33,'wikitext')", "(4,0,'Paris')")
    ids = from_sql(page, PROPS.replace("'Q168359'", "'Berlin'"))
    assert ids.found == {"Rock 'n' Roll (\"Live\"),\\ (1)": 3}
    assert ids.bad == 2
    assert ids.examples == ["(4,0,'Paris'),", "1,'wikibase_item','Berlin'"]


def test_files_that_are_something_else(from_sql, tmp_path, corpus):
    with pytest.raises(EbertError, match=r"page.sql has no table 'page'"):
        from_sql(PROPS)
    with pytest.raises(EbertError, match=r"props.sql has no table 'page_props'"):
        from_sql(props=PAGE)
    with pytest.raises(EbertError, match="has no column 'page_title'; it has page_id"):
        from_sql(PAGE.replace("page_title", "name"))
    with pytest.raises(EbertError, match="there is no file"):
        wikidata.from_sql(corpus, tmp_path / "nothing", tmp_path / "nothing")
    with pytest.raises(EbertError, match="ends too early"):
        from_sql(pack=lambda data: gzip.compress(data)[:-20])
    assert corpus.wikidata() == {}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_string_is_read_as_mysql_writes_it(tmp_path_factory, values):
    escapes = {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z", "\t": "\\t"}
    rows = ",".join(
        f"({number},'{''.join(escapes.get(letter, letter) for letter in value)}',NULL)"
        for number, value in enumerate(values)
    )
    path = tmp_path_factory.mktemp("sql") / "a.sql"
    path.write_text(
        f"CREATE TABLE `t` (\n `a` int,\n `b` blob,\n `c` int\n);\nINSERT INTO `t` VALUES {rows};\n", newline="\n"
    )
    found = wikidata.rows(path, "t", ["b", "a"], bad=pytest.fail)
    assert [(wikidata.text_of(b), int(a)) for b, a in found] == [(value, n) for n, value in enumerate(values)]


def test_doubled_quotes_and_several_statements(tmp_path):
    (tmp_path / "a.sql").write_text(
        "create table t (\n  a int,\n  b text\n);\n"
        "insert into t values (1,'it''s'),(2,'');\nREPLACE INTO `t` VALUES (3,'c');\n"
    )
    rows = wikidata.rows(tmp_path / "a.sql", "t", ["b"], bad=pytest.fail)
    assert [wikidata.text_of(value) for (value,) in rows] == ["it's", "", "c"]


def test_a_row_that_never_ends_takes_linear_time(tmp_path):
    """A million quotes and backslashes: a pattern that goes back would take forever."""
    (tmp_path / "a.sql").write_text(
        f"CREATE TABLE `t` (\n `a` int,\n `b` int\n);\nINSERT INTO `t` VALUES (1,'{chr(92) * 999_999}x"
    )
    bad = []
    assert list(wikidata.rows(tmp_path / "a.sql", "t", ["a"], bad=bad.append)) == []
    assert [len(row) for row in bad] == [wikidata.SHOWN]


# Tables.


@pytest.fixture
def from_tsv(corpus, tmp_path):
    def read(text, pack=bytes):
        (tmp_path / "ids.tsv").write_bytes(pack(text.encode()))
        return wikidata.from_tsv(corpus, tmp_path / "ids.tsv")

    return read


@pytest.mark.parametrize(
    "text",
    [
        "Jean Marais\tQ168359\nParis\tQ90\n",
        "title\tid\nJean_Marais\tQ168359\nParis\tQ90",
        "Q168359\tJean Marais\nQ90\tParis\textra\n",
        "\ufeffitem\ttitle\r\nhttp://www.wikidata.org/entity/Q168359\tJean Marais\r\n\r\nwd:Q90\tParis\r\n",
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_ids_from_a_table(from_tsv, text, pack):
    ids = from_tsv(text, pack)
    assert ids.found == {"Jean Marais": 168359, "Paris": 90}
    assert (ids.elsewhere, ids.twice, ids.bad) == (0, 0, 0)


def test_what_a_table_has_that_is_of_no_use(from_tsv):
    ids = from_tsv("Paris\tQ90\nParis\tQ91\nParis\tQ90\nBerlin\tQ64\nno id\tx\nQ5\t\n\n")
    assert ids.found == {"Paris": 90}
    assert (ids.elsewhere, ids.twice, ids.bad) == (1, 1, 2)
    assert ids.examples == ["no id\tx", "Q5\t"]


def test_a_title_that_looks_like_an_id(from_tsv):
    assert from_tsv("Paris\tQ90\nQ1\tQ7\n").found == {"Paris": 90, "Q1": 7}
    assert from_tsv("Q90\tParis\nQ7\tQ1\n").found == {"Paris": 90, "Q1": 7}


def test_new_ids_take_the_place_of_the_old(corpus, from_tsv):
    wikidata.write(corpus, from_tsv("Paris\tQ1\nKöln\tQ2\n"))
    wikidata.write(corpus, from_tsv("Paris\tQ90\n"))
    assert corpus.wikidata() == {"Paris": 90}
