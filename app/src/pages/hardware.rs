//! Hardware: servers, their states, what they are, and how to add one.

use events::access::Role;
use events::api::{CreateServer, RemoveServer};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::address::Address;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::{ABSENT, ago, gigabytes, maybe, maybe_count};
use crate::parts::states::{Empty, when_there};
use crate::parts::{CommandButton, CopyButton, Done, PageHead, server_state};
use crate::row::Row;
use crate::state::live;

/// The page.
#[component]
pub fn Hardware() -> impl IntoView {
    let page = Page::expect();
    let servers = use_rows(|| Some("/api/v_servers?removed=is.false&order=server.asc".into()));
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(servers, vec![format!("{org}:server+job")], live::fold_server, |e| {
            matches!(live::kind(e), "server" | "job")
        });
    }
    let now = RwSignal::new(now_ms());
    if let Ok(timer) = set_interval_with_handle(
        move || {
            now.try_set(now_ms());
            // Heartbeats are not events: the time of the last is read again.
            servers.reload();
        },
        std::time::Duration::from_secs(10),
    ) {
        on_cleanup(move || timer.clear());
    }
    let address = Address::here();
    let adding = Memo::new(move |_| address.query.with(|q| q.get("add").is_some()));
    let add = move |open: bool| {
        address.change(|q| {
            q.set("add", open.then_some(""));
        })
    };
    view! {
        <PageHead title="Hardware" meta=move || words(&servers.all()).into_any()>
            {untrack(|| page.signed_in()).then(|| view! {
                <button type="button" class="button button-primary" data-testid="add-server" on:click=move |_| add(true)>"Add server"</button>
            })}
        </PageHead>
        <Show when=move || adding.get()>
            <AddServer servers close=Callback::new(move |()| add(false))/>
        </Show>
        {when_there(
            servers,
            4,
            move || view! { <Empty words="No server yet. A server is a host with an agent on it: add one, run the command it shows, and it appears here."/> }.into_any(),
            move |list| table(&list, now, servers),
        )}
    }
    .into_any()
}

fn words(servers: &[Row]) -> String {
    let online = servers.iter().filter(|s| s.text("state") == "online").count();
    if servers.is_empty() {
        "hosts that serve models and generate load".to_owned()
    } else {
        format!("{online} of {} online", servers.len())
    }
}

fn table(list: &[Row], now: RwSignal<f64>, servers: Rows) -> AnyView {
    // Removing is the administrators'.
    let may = Page::expect().session.with_untracked(|s| s.as_ref().and_then(|s| s.role) == Some(Role::Admin));
    let lines = list.iter().map(|row| {
        let seen = row.millis("last_seen");
        let gpus = match (row.whole("gpu_count"), row.maybe_text("gpu_name")) {
            (Some(n), Some(name)) if n > 0 => format!("{n} × {name}, {} GB", maybe(row.number("gpu_memory_bytes").map(gigabytes))),
            (Some(_), _) => "none".to_owned(),
            _ => ABSENT.to_owned(),
        };
        let cpu = row.maybe_text("cpu_model").map_or_else(|| ABSENT.to_owned(), |m| format!("{m}, {} cores", maybe_count(row.whole("cpus"))));
        let doing = row.maybe_text("running_job").filter(|j| !j.is_empty()).map(|job| {
            let path = job.strip_prefix("job/").unwrap_or(&job).to_owned();
            let short = path.rsplit('/').next().unwrap_or_default().to_owned();
            view! { <a class="key" href=format!("/projects/{path}")>{short}</a> }
        });
        let idle = doing.is_none().then_some("idle");
        view! {
            <tr data-testid="server" data-state=row.text("state")>
                <th scope="row" class="card-title"><span class="key strong">{format!("{}/{}", row.text("config_code"), row.text("hostname"))}</span></th>
                <td class="card-figure" data-label="State">{server_state(&row.text("state"))}</td>
                <td class="number card-figure" data-label="Heartbeat">{move || seen.map_or_else(|| "never".to_owned(), |at| format!("{} ago", ago((now.get() - at) / 1000.0)))}</td>
                <td class="card-figure" data-label="Doing">{doing}{idle}</td>
                <td>{gpus}</td>
                <td class="clip" title=cpu.clone()>{cpu.clone()}</td>
                <td class="number">{maybe(row.number("ram_total_bytes").map(gigabytes))}</td>
                <td>{row.maybe_text("os").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="key">{row.maybe_text("agent_version").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="number">{maybe(row.number("cost_per_hour_usd"))}</td>
                {may.then(|| {
                    let server = RemoveServer { p_config_code: row.text("config_code"), p_hostname: row.text("hostname") };
                    view! {
                        <td>
                            <CommandButton word="Remove" sure="Its agent is let in no more." command="remove_server" arguments=Callback::new(move |()| server.clone()) done=Done::new(move |_| servers.reload()) testid="remove-server"/>
                        </td>
                    }
                })}
            </tr>
        }
        .into_any()
    });
    view! {
        <div class="table-scroll">
            <table class="data-table" data-testid="servers">
                <caption class="visually-hidden">"Servers"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Server"</th>
                        <th scope="col">"State"</th>
                        <th scope="col" class="number">"Heartbeat"</th>
                        <th scope="col">"Doing"</th>
                        <th scope="col">"GPUs"</th>
                        <th scope="col">"CPU"</th>
                        <th scope="col" class="number">"RAM "<span class="unit">"GB"</span></th>
                        <th scope="col">"System"</th>
                        <th scope="col">"Agent"</th>
                        <th scope="col" class="number">"Cost "<span class="unit">"$/h"</span></th>
                        {may.then(|| view! { <th scope="col"><span class="visually-hidden">"Remove"</span></th> })}
                    </tr>
                </thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
        <p class="table-foot"><span>"online: a heartbeat within 2 minutes · stale: within 10 · offline: older"</span></p>
    }
    .into_any()
}

#[component]
fn AddServer(servers: Rows, close: Callback<()>) -> impl IntoView {
    let page = Page::expect();
    let (config, hostname, cost) =
        (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let configs = use_rows(|| Some("/api/v_server_configs?order=config_code.asc".into()));
    let trouble = RwSignal::new(None::<Trouble>);
    // The server's key and its command, once it is registered. The token in it is shown once.
    let made = RwSignal::new(None::<(String, String)>);
    Effect::new(move |_| {
        if config.get_untracked().is_empty()
            && let Some(first) = configs.first()
        {
            config.set(first.text("config_code"));
        }
    });
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        spawn_local(async move {
            let request = CreateServer {
                p_config_code: config.get_untracked(),
                p_hostname: hostname.get_untracked().trim().to_owned(),
                p_comment: None,
                p_cost_per_hour_usd: cost.get_untracked().trim().parse().ok(),
            };
            match api::command("create_server_config_instance", &request).await {
                Ok(reply) => {
                    page.live.must_reach(reply.position);
                    servers.reload();
                    let text = |key: &str| {
                        reply.keys.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
                    };
                    made.try_set(Some((text("server"), text("bootstrap_command"))));
                    trouble.try_set(None);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let state = move || {
        let (server, _) = made.get()?;
        servers.all().iter().find(|s| s.text("server") == server).map(|s| s.text("state"))
    };
    view! {
        <section class="panel" aria-labelledby="add-server-title" data-testid="add-server-dialog">
            <div class="section-head">
                <h2 id="add-server-title">"Add server"</h2>
                <div class="actions"><button type="button" class="button button-quiet" on:click=move |_| close.run(())>"Close"</button></div>
            </div>
            <Show when=move || made.get().is_none()>
                <form class="form-grid" on:submit=submit>
                    <label class="field span-4">
                        <span class="field-label">"Configuration"</span>
                        <input class="control key" list="configs" required data-testid="config-code" bind:value=config/>
                        <datalist id="configs">
                            {move || configs.all().iter().map(|c| view! { <option value=c.text("config_code")>{c.text("display_name")}</option> }).collect_view()}
                        </datalist>
                    </label>
                    <label class="field span-4"><span class="field-label">"Host name"</span><input class="control key" required placeholder="gpu-01" data-testid="hostname" bind:value=hostname/></label>
                    <label class="field span-2 half"><span class="field-label">"Cost, $/h"</span><input class="control" inputmode="decimal" placeholder="unknown" bind:value=cost/></label>
                    <div class="field span-2 half"><span class="field-label">"\u{a0}"</span><button type="submit" class="button button-primary" data-testid="register-server">"Register"</button></div>
                </form>
                <div role="alert">
                    {move || trouble.get().map(|t| view! { <p><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> })}
                </div>
            </Show>
            {move || made.get().map(|(server, command)| view! {
                <p class="one-line">"Run this on "<span class="key">{server}</span>". The token in it works once and is not shown again."</p>
                <div class="command-head"><span class="meta">"bootstrap"</span><CopyButton text=Signal::stored(command.clone())/></div>
                <pre class="command" data-testid="bootstrap-command" tabindex="0">{command}</pre>
                <p class="one-line" data-testid="first-heartbeat">
                    {move || match state().as_deref() {
                        Some("online") => view! { <span class="status" data-status="completed">"online: the first heartbeat is here"</span> }.into_any(),
                        _ => view! { <span class="status" data-status="running">"waiting for the first heartbeat"</span> }.into_any(),
                    }}
                </p>
            })}
        </section>
    }
    .into_any()
}
