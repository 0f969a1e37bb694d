// npm's `@supabase/postgrest-js`, unchanged, against the API. Arguments: the API's address, a token, the run's stream key.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NPM_FOLDER}/`);
const { PostgrestClient } = require("@supabase/postgrest-js");

const [url, token, run] = process.argv.slice(2);
const client = new PostgrestClient(url, { headers: { Authorization: `Bearer ${token}` } });
const jobs = (columns, options) => client.from("v_jobs").select(columns, options).eq("run", run);

const page = await jobs("c:concurrency, status", { count: "exact" }).order("concurrency", { ascending: false }).range(0, 1);
assert.equal(page.error, null);
assert.equal(page.count, 3);
assert.equal(page.status, 206);
assert.deepEqual(page.data, [{ c: 4, status: "completed" }, { c: 2, status: "completed" }]);
assert.equal((await jobs("job", { count: "estimated" })).count, 3);
assert.ok((await jobs("job", { count: "planned" })).count >= 1);
const head = await jobs("*", { count: "exact", head: true });
assert.equal(head.count, 3);
assert.equal(head.error, null);

const concurrencies = async (query) => {
  const { data, error } = await query.order("concurrency");
  assert.equal(error, null, JSON.stringify(error));
  return data.map((row) => row.concurrency);
};
const plain = () => jobs("concurrency");
assert.deepEqual(await concurrencies(plain().neq("concurrency", 2)), [1, 4]);
assert.deepEqual(await concurrencies(plain().gt("concurrency", 1).lte("concurrency", 4)), [2, 4]);
assert.deepEqual(await concurrencies(plain().in("concurrency", [1, 4])), [1, 4]);
assert.deepEqual(await concurrencies(plain().in("scenario_code", ["a,b", 'say "x"', "c1-isl64-osl8"])), [1]);
assert.deepEqual(await concurrencies(plain().is("error_code", null)), [1, 2, 4]);
assert.deepEqual(await concurrencies(plain().not("finished_at", "is", null)), [1, 2, 4]);
assert.deepEqual(await concurrencies(plain().like("scenario_code", "c2-%")), [2]);
assert.deepEqual(await concurrencies(plain().ilike("scenario_code", "C4-%")), [4]);
assert.deepEqual(await concurrencies(plain().or("concurrency.eq.1,and(concurrency.gt.2,status.eq.completed)")), [1, 4]);
assert.deepEqual(await concurrencies(plain().match({ concurrency: 2, status: "completed" })), [2]);
assert.deepEqual(await concurrencies(plain().filter("concurrency", "in", "(1,2)")), [1, 2]);

const nulls = await jobs("concurrency").order("error_code", { nullsFirst: true }).order("concurrency").limit(1);
assert.deepEqual(nulls.data, [{ concurrency: 1 }]);
const one = await jobs("scenario_code").eq("concurrency", 4).single();
assert.match(one.data.scenario_code, /^c4-/);
const several = await jobs("job").single();
assert.equal(several.status, 406);
assert.equal(several.error.code, "not_one_row");
const none = await jobs("job").eq("concurrency", 99).maybeSingle();
assert.deepEqual([none.data, none.error], [null, null]);

const csv = await jobs("concurrency").order("concurrency").csv();
assert.deepEqual(csv.data.trim().split(/\s+/), ["concurrency", "1", "2", "4"]);
const made = await client.rpc("create_project", { p_name: "By rpc", p_project_code: "by-javascript" });
assert.equal(made.error, null, JSON.stringify(made.error));
assert.equal(made.data.project_code, "by-javascript");
const wrong = await client.from("v_jobs").select("no_such_column");
assert.equal(wrong.error.code, "unknown_column");
assert.match(wrong.error.hint, /its columns are/);
