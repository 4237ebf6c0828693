"""A fixture that many tests share and that fails, fails once, with its reason: its other tests are skipped, and say why."""

import pytest

SEEN = pytest.StashKey[dict]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Take the second and each further failure of one fixture, which pytest raises again as it was, for a skip."""
    report = yield
    if call.when != "setup" or report.outcome != "failed":
        return report
    seen, error = item.session.stash.setdefault(SEEN, {}), call.excinfo.value
    first, _ = seen.setdefault(id(error), (item.nodeid, error))  # the error is kept: its number is not given to another one
    if first != item.nodeid:
        path, line, _ = item.location
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        report.outcome, report.longrepr = "skipped", (path, line or 0, f"Skipped: a fixture failed, see {first}: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Take the end of the process, as a job's code asks for, for a failure: pytest keeps none, and fails in each further test otherwise."""
    try:
        return (yield)
    except SystemExit as end:
        error = RuntimeError(f"the fixture {fixturedef.argname} asked the process to end ({end.code})")
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (error, None))
        raise error from end
