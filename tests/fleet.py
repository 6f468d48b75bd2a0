"""Reads tollgate's exports with the systems that they are for, and runs the queries of docs/fleet-queries.md.

usage: fleet.py TOLLGATE FLEET

TOLLGATE is the program, FLEET a directory that the example `fleet` made. The SQL is read from the pages themselves. Checks of a missing system
are skipped and named.
"""

import csv
import datetime
import io
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("fleet", "fleet-queries", "fleet-machines"))
WITHIN = 0.022


def blocks(info):
    """The page's blocks with this info string."""
    return [text.strip() for text in re.findall(rf"^```{re.escape(info)}\n(.*?)^```", PAGE, re.M | re.S)]


def columns_of_page(heading):
    """The names in the first column of the table under a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def skipped(what, why):
    print(f"skipped: {what}: {why}")


def done(what):
    print(f"checked: {what}")


# The queries.


def duckdb_answers(fleet, queries):
    import duckdb

    engine = duckdb.connect()
    for view in blocks("sql duckdb"):
        engine.execute(view.replace("/srv/tollgate", str(fleet)))
    described = {row[0] for row in engine.execute("DESCRIBE results").fetchall()}
    assert described == set(columns_of_page("The lines")) | {"date"}, described
    # The files are read once, for all queries.
    engine.execute("CREATE TABLE loaded AS SELECT * FROM results")
    engine.execute("CREATE OR REPLACE VIEW results AS SELECT * FROM loaded")
    return [engine.execute(query).fetchall() for query in queries]


def spark_answers(fleet, queries):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        # The cost of opening a file, by which files are packed into partitions.
        .config("spark.sql.files.openCostInBytes", "4096")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    for view in "\n".join(blocks("sql spark")).split(";"):
        if view.strip():
            session.sql(view.replace("/srv/tollgate", str(fleet)))
            if "VIEW results" in view:
                session.sql("CACHE TABLE results")
    described = {row[0] for row in session.sql("DESCRIBE results").collect() if not row[0].startswith("#")}
    assert described == set(columns_of_page("The lines")) | {"date"}, described
    answers = [[tuple(row) for row in session.sql(query).collect()] for query in queries]
    session.stop()
    return answers


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


def expect_same(query, here, there):
    assert len(here) == len(there), (query, len(here), len(there))
    for one, other in zip(here, there):
        assert len(one) == len(other) and all(map(same, one, other)), (query, one, other)


def expect_truth(answers, fleet):
    """The answers that the simulated fleet has by construction."""
    kernels, shared, slowest, p99, around, outliers, places = answers
    [(before, after, machines, ratio, least, most, slower)] = kernels
    assert (before, after) == ("6.1.90", "6.12.8") and abs(ratio - 1.12) < 0.01 and slower == machines, kernels
    fact, has, of_the_slow, of_the_others = shared[0]
    assert (fact, has, of_the_slow) == ("kernel.traced_system_calls", "yes", 1.0) and of_the_others < 0.3, shared
    assert len(slowest) == 100 and slowest[0][1] >= slowest[99][1] > 0
    exact = json.loads((fleet / "exact.json").read_text())
    assert {row[0] for row in p99} == set(exact)
    for benchmark, _, found, samples in p99:
        off = found / exact[benchmark]["p99"] - 1
        print(f"  fleet p99 of {benchmark}: {found:.1f} ns by summed histograms, {exact[benchmark]['p99']:.1f} exactly: {off:+.2%}")
        assert samples == exact[benchmark]["count"] and abs(off) <= WITHIN
    by_run = {run: of_before for run, _, _, of_before in around}
    assert abs(by_run[-1] - 1) < 0.01 and abs(by_run[0] - 1.12) < 0.02 and sorted(by_run) == list(range(-7, 8)), around
    assert outliers, "no machine differs"
    [(place, benchmark, _, machines, ratio, least, most)] = places
    assert (place, benchmark) == ("container", "traps/signal-self") and machines > 0, places
    assert 1.049 < least <= ratio <= most < 1.051, places


def check_store(program, fleet):
    """The fleet is a sound store: each run is listed without a fault, and no line refers to facts that are not there."""
    import duckdb

    listed = json.loads(subprocess.run([program, "store", "list", "--format", "json", fleet], check=True, capture_output=True, timeout=60).stdout)
    files = {str(path.relative_to(fleet)) for path in fleet.glob("schema=2/date=*/*.ndjson")}
    assert {run["path"] for run in listed["runs"]} == files and files
    assert not [run for run in listed["runs"] if run["fault"]], listed
    engine = duckdb.connect()
    for view in blocks("sql duckdb"):
        engine.execute(view.replace("/srv/tollgate", str(fleet)))
    missing = "SELECT count(*) FROM results WHERE env_id NOT IN (SELECT env_id FROM facts)"
    assert engine.execute(missing).fetchone() == (0,)
    # A line that was cut off is named.
    with tempfile.TemporaryDirectory() as name:
        cut = pathlib.Path(name) / "schema=2/date=2026-11-21/cut.ndjson"
        cut.parent.mkdir(parents=True)
        cut.write_text((fleet / min(files)).read_text()[:-9])
        try:
            engine.execute(blocks("sql duckdb")[0].split(";")[0].replace("VIEW results", "VIEW damaged").replace("/srv/tollgate", name))
            engine.execute("SELECT count(median) FROM damaged").fetchall()
            raise AssertionError("DuckDB reads a line that was cut off")
        except duckdb.Error as error:
            assert "cut.ndjson" in str(error), error
    done(f"{len(files)} stored runs, as `store list` and DuckDB have them")


def check_questions(fleet):
    queries = blocks("sql")
    # The last one writes files and is checked separately.
    *queries, copy = queries
    here = duckdb_answers(fleet, queries)
    expect_truth(here, fleet)
    done(f"{len(queries)} queries on DuckDB, with the expected answers")
    check_copy(fleet, copy)
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        return skipped("the queries on Spark", error)
    if not shutil.which("java"):
        return skipped("the queries on Spark", "no java")
    there = spark_answers(fleet, queries)
    for query, one, other in zip(queries, here, there):
        expect_same(query, one, other)
    done(f"the same {len(queries)} queries on Spark, with equal answers: {[len(rows) for rows in here]} rows")


def check_copy(fleet, copy):
    import duckdb

    with tempfile.TemporaryDirectory() as directory:
        engine = duckdb.connect()
        engine.execute(blocks("sql duckdb")[0].split(";")[0].replace("/srv/tollgate", str(fleet)))
        assert "date < current_date" in copy
        # The days of the simulated fleet are fixed.
        copy = copy.replace("date < current_date", "date < DATE '2026-11-03'").replace("/srv/tollgate-parquet", directory)
        engine.execute(copy)
        made = engine.execute(f"SELECT count(*), sum(median) FROM read_parquet('{directory}/*/*.parquet')").fetchone()
        there = engine.execute("SELECT count(*), sum(median) FROM results WHERE date < DATE '2026-11-03'").fetchone()
        assert made[0] == there[0] > 0 and same(made[1], there[1]), (made, there)
    done("lines as Parquet")


# The exports.

# The samples of every measurement of the test, and the median of its processes' medians.
SAMPLES = [100.0 + n % 7 for n in range(60)]
MEDIAN = statistics.median(statistics.median(SAMPLES[first : first + 10]) for first in range(0, 60, 10))
HOSTILE = '=cmd|"/C calc"!A0, \\ "quoted"\nnext\tline é \u202e # EOF {x="y"}'


def plain(text):
    """The text as a name, which has nothing that controls a terminal."""
    return text.replace("\n", " ").replace("\t", " ").replace("\u202e", "")


def document(number, why):
    """A run whose texts have the syntax of every format."""
    measured = {
        "status": "measured", "unit": "ns", "provenance": "hardware", "ops_per_sample": 500, "clock_hz": 2_000_000_000,
        "samples": SAMPLES, "discarded": 0, "processes": [{"rounds": 10, "discarded": []}] * 6, "group": "g",
    }
    hostile = plain(HOSTILE)
    return {
        "schema": 2, "tool": {"name": "tollgate", "version": "0.1.0"}, "id": f"20261121-015427-{number:08x}", "label": f"l{number}",
        "environment": "vm", "started": "2026-11-21T01:54:27Z", "finished": "2026-11-21T01:55:27Z",
        "facts": {
            "kernel.release": {"status": "known", "value": why, "source": "uname(2)"},
            "cpu.model": {"status": "known", "value": "+1", "source": "CPUID"},
            "run.machine": {"status": "known", "value": "@m", "source": "--machine"},
        },
        "measurements": [
            {"benchmark": "entry/syscall", "params": {}, **measured},
            {"benchmark": hostile, "params": {hostile: hostile, "n": 3}, **measured},
            {"benchmark": "memory/latency", "params": {"size": 4096}, **measured, "unit": "ns/line"},
            {"benchmark": "locks/footprint", "params": {"lock": "mutex"}, **measured, "unit": "bytes"},
            {"benchmark": "entry/int80", "params": {}, "status": "skipped", "why": why},
        ],
    }


def export(program, fmt, runs, directory):
    out = directory / f"out.{fmt}"
    subprocess.run([program, "export", "--format", fmt, "--out", out, *runs], check=True, timeout=60)
    return out.read_bytes().decode()


def check_exports(program):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        runs = [directory / f"{number}.json" for number in (1, 2)]
        for number, run in enumerate(runs, 1):
            run.write_text(json.dumps(document(number, HOSTILE)))
        for some in (runs[:1], runs):
            check_openmetrics(export(program, "openmetrics", some, directory), len(some))
            check_csv(export(program, "csv", some, directory), len(some))
            check_ndjson(export(program, "ndjson", some, directory), len(some), directory)
        check_bmf(export(program, "bmf", runs[:1], directory))


def check_openmetrics(text, runs):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as prometheus

    families = {family.name: family for family in openmetrics(text)}
    latency = families["tollgate_latency_seconds"]
    assert (latency.type, latency.unit) == ("gauge", "seconds") and len(latency.samples) == 3 * runs
    texts = {sample.labels["benchmark"] for sample in latency.samples}
    assert plain(HOSTILE) in texts, texts
    assert all(1e-7 < sample.value < 2e-7 and sample.timestamp is None for sample in latency.samples)
    assert [sample.value for sample in families["tollgate_size_bytes"].samples] == [MEDIAN] * runs
    info = families["tollgate_run_info"].samples
    assert [sample.labels["kernel"] for sample in info] == [HOSTILE] * runs, info
    assert {sample.labels["per"] for sample in latency.samples} == {"operation", "line"}
    older = {family.name: len(family.samples) for family in prometheus(text)}
    assert older == {name: len(family.samples) for name, family in families.items()}
    done(f"openmetrics of {runs} by the Python client, as OpenMetrics and as the older text")
    if not shutil.which("promtool"):
        return skipped("openmetrics by promtool", "no promtool")
    said = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
    assert said.returncode == 0 and not said.stdout + said.stderr, said
    done(f"openmetrics of {runs} by promtool")


def check_csv(text, runs):
    assert text.count("\r\n") > 5 * runs
    header, *records = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert len(records) == 5 * runs and all(len(record) == len(header) for record in records)
    for record in (dict(zip(header, record)) for record in records):
        assert record["kernel"] == "'" + HOSTILE and record["cpu"] == "'+1" and record["machine"] == "'@m"
        assert not any(field[:1] in "=+-@\t\r" for field in record.values() if field), record
    assert records[4][header.index("why")] == "'" + HOSTILE
    done(f"csv of {runs} by Python's reader")


def check_ndjson(text, runs, directory):
    import duckdb

    rows = [json.loads(line) for line in text.splitlines()]
    # Only the runs of a session have its columns.
    expected = [[name for name in columns_of_page("The lines") if name in row or not name.startswith("session")] for row in rows]
    assert len(rows) == 5 * runs and [list(row) for row in rows] == expected
    day = directory / "schema=2/date=2026-11-21"
    day.mkdir(parents=True, exist_ok=True)
    (day / "a.ndjson").write_text(text)
    engine = duckdb.connect()
    engine.execute(blocks("sql duckdb")[0].split(";")[0].replace("/srv/tollgate", str(directory)))
    names = columns_of_page("The lines")
    read = engine.execute(f"SELECT {', '.join(names)}, date FROM results ORDER BY run, benchmark, params").fetchall()
    there = sorted(([row.get(name) for name in names] for row in rows), key=lambda row: (row[1], row[names.index("benchmark")].encode()))
    assert [list(row[:-1]) for row in read] == there
    assert {row[-1] for row in read} == {datetime.date(2026, 11, 21)}
    done(f"ndjson of {runs} by DuckDB: the same values")


def check_bmf(text):
    import jsonschema

    schema = json.loads((ROOT / "tests/bmf.schema.json").read_text())
    bmf = json.loads(text)
    jsonschema.Draft7Validator(schema).validate(bmf)
    wrong = {"entry/syscall": {"latency": {"lower_value": 1.0}}}
    assert list(jsonschema.Draft7Validator(schema).iter_errors(wrong)), "the schema accepts anything"
    assert bmf["entry/syscall"]["latency"]["value"] == MEDIAN and len(bmf) == 4
    done("bmf by its JSON schema")


# The units and manifests of the page.


def check_units():
    program = shutil.which("systemd-analyze")
    if not program:
        return skipped("the systemd units", "no systemd-analyze")
    with tempfile.TemporaryDirectory() as name:
        units = []
        for unit in ("tollgate.service", "tollgate.timer"):
            [text] = blocks(f"ini systemd {unit}")
            path = pathlib.Path(name) / unit
            # The program is not installed here.
            path.write_text(text.replace("/usr/local/bin/tollgate", "/bin/true") + "\n")
            units.append(path)
        said = subprocess.run([program, "verify", "--man=no", *units], text=True, capture_output=True, timeout=60)
        wrong = [line for line in said.stderr.splitlines() if name in line or "tollgate." in line]
        assert not wrong, wrong
    done("the systemd units by systemd-analyze")


def check_ageing():
    [text] = blocks("json lifecycle")
    for rule in json.loads(text)["Rules"]:
        assert rule["Filter"]["Prefix"] in ("tollgate/schema=2/", "tollgate/runs/") and rule["Expiration"]["Days"] > 0, rule
    program = shutil.which("systemd-tmpfiles")
    if not program:
        return skipped("the ageing by systemd", "no systemd-tmpfiles")
    [line] = blocks("ini systemd tollgate.conf")
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        configuration = root / "etc/tmpfiles.d/tollgate.conf"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(line + "\n")
        store = root / "var/lib/tollgate"
        files = ["env/{}.json", "runs/{}.json", "schema=2/date=2026-11-{}/a.ndjson"]
        days = {10: 20, 11: 3}
        for day, age in days.items():
            for file in files:
                path = store / file.format(day)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("{}")
                then = time.time() - age * 86400
                os.utime(path, (then, then))
        said = subprocess.run([program, f"--root={root}", "--clean", "tollgate.conf"], text=True, capture_output=True, timeout=60)
        left = sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())
        assert said.returncode == 0 and left == sorted(file.format(11) for file in files), (left, said)
    done("the ageing of old runs by systemd-tmpfiles")


def check_manifest(program):
    try:
        import yaml
    except ImportError as error:
        return skipped("the DaemonSet", error)
    [text] = blocks("yaml kubernetes")
    manifest = yaml.safe_load(text)
    pod = manifest["spec"]["template"]["spec"]
    assert manifest["spec"]["selector"]["matchLabels"] == manifest["spec"]["template"]["metadata"]["labels"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["initContainers"] + pod["containers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    for container in pod["initContainers"]:
        # The program takes these arguments: with --help behind them it reads them, and measures nothing.
        arguments = [argument.replace("$(NODE)", "node") for argument in container["args"]]
        subprocess.run([program, *arguments, "--help"], check=True, capture_output=True, timeout=10)
    done("the DaemonSet by a YAML parser, and its arguments by the program")


def timed(check, *arguments):
    before = time.monotonic()
    check(*arguments)
    print(f"  {check.__name__}: {time.monotonic() - before:.0f} s")


def main():
    program, fleet = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    timed(check_exports, program)
    timed(check_units)
    timed(check_ageing)
    timed(check_manifest, program)
    timed(check_store, program, fleet)
    timed(check_questions, fleet)


if __name__ == "__main__":
    main()
