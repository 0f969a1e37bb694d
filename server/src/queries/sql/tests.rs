use proptest::prelude::*;

use super::*;
use crate::auth::Principal;
use crate::projections::views::served;

fn statement(raw: &str) -> Option<Statement> {
    let view = served("v_jobs")?;
    let query = Query::parse(view, raw).ok()?;
    Some(rows(view, &Principal::Anonymous.visibility(), &query))
}

#[test]
fn a_query_becomes_sql_with_bound_values() {
    let statement =
        statement("select=job,n:attempt&status=eq.running&order=job.asc.nullslast&limit=5").unwrap();
    assert!(
        statement.sql.starts_with("select \"job\" as \"job\", \"attempt\" as \"n\" from read.v_jobs where (")
    );
    assert!(statement.sql.contains("\"status\" = $3::text::text order by \"job\" asc nulls last"));
    assert_eq!(statement.values[2], Value::Text(Some("running".into())));
}

proptest! {
    /// Whatever a client writes, the SQL is made of the whitelist: no character of a value ever stands in it.
    #[test]
    fn no_value_reaches_the_sql(marker in "zq[a-z]{6}", before in "[^&=]{0,10}", after in "[^&=]{0,10}") {
        let value = format!("{before}{marker}{after}");
        let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
        for raw in [
            format!("status=eq.{encoded}"),
            format!("status=in.({encoded},x)"),
            format!("status=like.{encoded}"),
            format!("or=(status.eq.{encoded},job.eq.{encoded})"),
            format!("select={encoded}"),
            format!("order={encoded}"),
            format!("{encoded}=eq.1"),
            format!("select=a{marker}:job"),
        ] {
            if let Some(statement) = statement(&raw) {
                // An alias is checked to be letters, digits and '_', and stands in quotes.
                let sql = statement.sql.replace(&format!(" as \"a{marker}\""), "");
                prop_assert!(!sql.contains(&marker), "{}", statement.sql);
            }
        }
    }
}

#[test]
fn a_page_from_the_greatest_down_reads_what_is_known_first() {
    let view = served("v_benchmark_results").unwrap();
    let sql = |raw: &str| {
        let query = Query::parse(view, raw).unwrap();
        rows(view, &Principal::Anonymous.visibility(), &query).sql
    };
    let page = sql("select=job,t:ttft_p99_ms&order=energy_j.desc.nullslast,job.asc&limit=50&offset=100");
    assert!(
        page.contains("\"energy_j\" is not null order by \"energy_j\" desc nulls first, \"job\" asc"),
        "{page}"
    );
    assert!(page.contains(" limit 150)") && page.contains("greatest(150 - (select count(*) from known), 0)"));
    assert!(page.contains("select \"job\" as \"job\", \"ttft_p99_ms\" as \"t\" from (select * from known"));
    let bounded = sql("energy_j=gt.1&order=energy_j.desc.nullslast,job.asc&limit=50");
    assert!(
        bounded.contains("order by \"energy_j\" desc nulls first, \"job\" asc") && !bounded.contains("known")
    );
    for plain in [
        "order=energy_j.desc.nullslast,job.asc",
        "order=energy_j.desc&limit=50",
        "order=energy_j.asc.nullslast&limit=50",
        "order=energy_j.desc.nullslast&limit=50&as_of=1",
        "order=energy_j.desc.nullslast&limit=50&offset=1000000",
    ] {
        assert!(!sql(plain).contains("known"), "{plain}");
    }
}
