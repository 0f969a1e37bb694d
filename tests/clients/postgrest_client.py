"""PyPI's `postgrest`, unchanged, against the API. Arguments: the API's address, a token, the run's stream key."""

import sys

from postgrest import APIError, CountMethod, SyncPostgrestClient

url, token, run = sys.argv[1:]
client = SyncPostgrestClient(url, headers={"Authorization": f"Bearer {token}"})


def jobs(*columns, **options):
    return client.from_("v_jobs").select(*columns, **options).eq("run", run)


# A page with its total, renamed columns and an order.
page = jobs("c:concurrency", "status", count=CountMethod.exact).order("concurrency", desc=True).range(0, 1).execute()
assert page.count == 3, page
assert page.data == [{"c": 4, "status": "completed"}, {"c": 2, "status": "completed"}], page
planned = jobs("job", count=CountMethod.planned).execute()
assert planned.count >= 1 and len(planned.data) == 3, planned
estimated = jobs("job", count=CountMethod.estimated).execute()
assert estimated.count == 3, estimated
# HEAD: the count alone.
counted = jobs("*", count=CountMethod.exact, head=True).execute()
assert counted.count == 3 and not counted.data, counted

# Every filter.
def concurrencies(query):
    return [row["concurrency"] for row in query.order("concurrency").execute().data]


plain = lambda: jobs("concurrency")
assert concurrencies(plain().neq("concurrency", 2)) == [1, 4]
assert concurrencies(plain().gt("concurrency", 1).lte("concurrency", 4)) == [2, 4]
assert concurrencies(plain().gte("concurrency", 2).lt("concurrency", 4)) == [2]
assert concurrencies(plain().in_("concurrency", [1, 4])) == [1, 4]
assert concurrencies(plain().is_("error_code", "null")) == [1, 2, 4]
assert concurrencies(plain().is_("streaming", True)) == [1, 2, 4]
assert concurrencies(plain().not_.is_("finished_at", "null")) == [1, 2, 4]
assert concurrencies(plain().like("scenario_code", "c2-%")) == [2]
assert concurrencies(plain().ilike("scenario_code", "C4-%")) == [4]
assert concurrencies(plain().or_("concurrency.eq.1,and(concurrency.gt.2,status.eq.completed)")) == [1, 4]
assert concurrencies(plain().in_("scenario_code", ["a,b", 'say "x"', "c1-isl64-osl8"])) == [1]
assert concurrencies(plain().order("error_code", nullsfirst=True).limit(2).offset(1)) == [2, 4]
assert concurrencies(plain().match({"concurrency": 2, "status": "completed"})) == [2]

# One row, or none.
one = jobs("scenario_code").eq("concurrency", 4).single().execute()
assert one.data["scenario_code"].startswith("c4-"), one
try:
    jobs("job").single().execute()
except APIError as error:
    assert error.code == "not_one_row" and error.hint, error.json()
else:
    raise AssertionError("three rows are not one")
assert jobs("job").eq("concurrency", 99).maybe_single().execute() is None

# CSV, commands, and an error with everything it has to say.
csv = jobs("concurrency").order("concurrency").csv().execute()
assert csv.data.split() == ["concurrency", "1", "2", "4"], csv.data
made = client.rpc("create_project", {"p_name": "By rpc", "p_project_code": "by-python"}).execute()
assert made.data["project_code"] == "by-python" and made.data["position"] > 0, made
try:
    client.from_("v_jobs").select("no_such_column").execute()
except APIError as error:
    assert error.code == "unknown_column" and "its columns are" in error.hint, error.json()
else:
    raise AssertionError("an unknown column was read")
