//! Hardware: servers, their states, what they are, and how to add one.

use events::access::Role;
use events::api::{CreateServer, RemoveServer, SetServerMaintenance};
use events::first_page;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::address::Address;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::{ABSENT, ago, gigabytes, maybe, maybe_count};
use crate::parts::states::{Empty, once_there};
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
    let maintained = Memo::new(move |_| address.query.with(|q| q.get("maintain").map(str::to_owned)));
    let maintain = move |server: Option<String>| {
        address.change(|q| {
            q.set("maintain", server.as_deref());
        })
    };
    view! {
        <PageHead title=first_page::HARDWARE.title meta=move || words(&servers.all()).into_any()>
            {untrack(|| page.signed_in()).then(|| view! {
                <button type="button" class="button button-primary" data-testid="add-server" on:click=move |_| add(true)>"Add server"</button>
            })}
        </PageHead>
        <Show when=move || adding.get()>
            <AddServer servers close=Callback::new(move |()| add(false))/>
        </Show>
        {move || maintained.get().filter(|_| page.may(Role::Admin)).map(|server| view! {
            <Maintenance servers server close=Callback::new(move |()| maintain(None))/>
        })}
        {once_there(
            servers,
            4,
            move || view! { <Empty words="No server yet. A server is a host with an agent on it: add one, run the command it shows, and it appears here."/> }.into_any(),
            move || table(now, servers, Callback::new(move |server| maintain(Some(server)))),
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

/// The servers; a row stays while its server does, so that the keyboard stays in it.
fn table(now: RwSignal<f64>, servers: Rows, maintain: Callback<String>) -> AnyView {
    let keys = Memo::new(move |_| servers.all().iter().map(|s| s.text("server")).collect::<Vec<_>>());
    let may = Page::expect().may(Role::Admin);
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
                        {may.then(|| view! { <th scope="col"><span class="visually-hidden">"Maintenance and removal"</span></th> })}
                    </tr>
                </thead>
                <tbody>
                    <For each=move || keys.get() key=Clone::clone let:key>
                        <Server servers key now maintain/>
                    </For>
                </tbody>
            </table>
        </div>
        <p class="table-foot"><span>"online: a heartbeat within 2 minutes · stale: within 10 · offline: older"</span></p>
    }
    .into_any()
}

/// A server.
#[component]
fn Server(servers: Rows, key: String, now: RwSignal<f64>, maintain: Callback<String>) -> impl IntoView {
    let key = StoredValue::new(key);
    let found = move || {
        servers.rows.with(|rows| {
            rows.iter().flatten().find(|s| key.with_value(|key| s.text("server") == *key)).cloned()
        })
    };
    // A heartbeat changes one cell, not the row.
    let seen = Memo::new(move |_| found().and_then(|row| row.millis("last_seen")));
    let row = Memo::new(move |_| {
        let mut row = found().unwrap_or_default();
        row.0.remove("last_seen");
        row
    });
    let gpus = move || {
        row.with(|row| match (row.whole("gpu_count"), row.maybe_text("gpu_name")) {
            (Some(n), Some(name)) if n > 0 => {
                format!("{n} × {name}, {} GB", maybe(row.number("gpu_memory_bytes").map(gigabytes)))
            }
            (Some(_), _) => "none".to_owned(),
            _ => ABSENT.to_owned(),
        })
    };
    let cpu = Memo::new(move |_| {
        row.with(|row| match row.maybe_text("cpu_model") {
            Some(model) => format!("{model}, {} cores", maybe_count(row.whole("cpus"))),
            None => ABSENT.to_owned(),
        })
    });
    let doing = move || {
        row.with(|row| match row.maybe_text("running_job").filter(|job| !job.is_empty()) {
            Some(job) => {
                let path = job.strip_prefix("job/").unwrap_or(&job).to_owned();
                let short = path.rsplit('/').next().unwrap_or_default().to_owned();
                view! { <a class="key" href=format!("/projects/{path}")>{short}</a> }.into_any()
            }
            None => "idle".into_any(),
        })
    };
    let state = move || {
        row.with(|row| {
            let why = row.is("maintenance").then(|| row.text("maintenance_reason"));
            view! {
                {server_state(&row.text("state"))}
                {why.map(|why| view! { " "<span class="status status-words" data-status="flagged" data-testid="in-maintenance" title="no new job goes there until it ends">{format!("maintenance: {why}")}</span> })}
            }
        })
    };
    let text = move |column: &'static str| {
        move || row.with(|row| row.maybe_text(column).unwrap_or_else(|| ABSENT.to_owned()))
    };
    view! {
        <tr data-testid="server" data-server=key.get_value() data-state=move || row.with(|row| row.text("state"))>
            <th scope="row" class="card-title"><span class="key strong">{move || row.with(|row| format!("{}/{}", row.text("config_code"), row.text("hostname")))}</span></th>
            <td class="card-figure wrap" data-label="State">{state}</td>
            <td class="number card-figure" data-label="Heartbeat">{move || seen.get().map_or_else(|| "never".to_owned(), |at| format!("{} ago", ago((now.get() - at) / 1000.0)))}</td>
            <td class="card-figure" data-label="Doing">{doing}</td>
            <td>{gpus}</td>
            <td class="wrap">{move || cpu.get()}</td>
            <td class="number">{move || row.with(|row| maybe(row.number("ram_total_bytes").map(gigabytes)))}</td>
            <td class="wrap">{text("os")}</td>
            <td class="key">{text("agent_version")}</td>
            <td class="number">{move || row.with(|row| maybe(row.number("cost_per_hour_usd")))}</td>
            <Acts servers key row maintain/>
        </tr>
    }
    .into_any()
}

/// What administrators may do with a server.
#[component]
fn Acts(
    servers: Rows,
    key: StoredValue<String>,
    row: Memo<Row>,
    maintain: Callback<String>,
) -> impl IntoView {
    if !Page::expect().may(Role::Admin) {
        return ().into_any();
    }
    let words = Memo::new(move |_| row.with(|row| (row.text("config_code"), row.text("hostname"))));
    let resting = Memo::new(move |_| row.with(|row| row.is("maintenance")));
    let end = Callback::new(move |()| {
        let (config, host) = words.get_untracked();
        SetServerMaintenance { p_config_code: config, p_hostname: host, p_on: false, p_reason: None }
    });
    let remove = Callback::new(move |()| {
        let (config, host) = words.get_untracked();
        RemoveServer { p_config_code: config, p_hostname: host }
    });
    let again = Done::new(move |_| servers.reload());
    let again = StoredValue::new(again);
    view! {
        <td>
            <div class="actions">
                <Show
                    when=move || resting.get()
                    fallback=move || view! { <button type="button" class="button" data-testid="begin-maintenance" on:click=move |_| maintain.run(key.get_value())>"Maintenance"</button> }
                >
                    <CommandButton word="End maintenance" command="set_server_maintenance" arguments=end done=again.get_value() testid="end-maintenance"/>
                </Show>
                <CommandButton word="Remove" sure="Its agent is let in no more." command="remove_server" arguments=remove done=again.get_value() testid="remove-server"/>
            </div>
        </td>
    }
    .into_any()
}

/// Maintenance begins with a reason.
#[component]
fn Maintenance(servers: Rows, server: String, close: Callback<()>) -> impl IntoView {
    let key = StoredValue::new(server);
    let reason = RwSignal::new(String::new());
    let field = NodeRef::<leptos::html::Input>::new();
    Effect::new(move |_| {
        if let Some(field) = field.get() {
            let _ = field.focus();
        }
    });
    let found = move || {
        servers.rows.with(|rows| {
            rows.iter().flatten().find(|s| key.with_value(|key| s.text("server") == *key)).cloned()
        })
    };
    let name = move || {
        found()
            .map_or_else(|| key.get_value(), |s| format!("{}/{}", s.text("config_code"), s.text("hostname")))
    };
    let begin = Callback::new(move |()| {
        let row = untrack(found).unwrap_or_default();
        SetServerMaintenance {
            p_config_code: row.text("config_code"),
            p_hostname: row.text("hostname"),
            p_on: true,
            p_reason: Some(reason.get_untracked().trim().to_owned()),
        }
    });
    let done = Done::new(move |_| {
        servers.reload();
        close.try_run(());
    });
    view! {
        <section class="panel" aria-labelledby="maintenance-title" data-testid="maintenance-form">
            <div class="section-head">
                <h2 id="maintenance-title">"Maintenance of "<span class="key">{name}</span></h2>
                <div class="actions"><button type="button" class="button button-quiet" on:click=move |_| close.run(())>"Close"</button></div>
            </div>
            <div class="form-grid">
                <label class="field span-8">
                    <span class="field-label">"Why"</span>
                    <input class="control" data-testid="maintenance-reason" placeholder="new power supply" node_ref=field bind:value=reason/>
                </label>
                <div class="field span-4">
                    <span class="field-label">"\u{a0}"</span>
                    <CommandButton word="Begin maintenance" command="set_server_maintenance" arguments=begin done testid="maintain"/>
                </div>
            </div>
            <p class="meta">"What runs there goes on; no new job begins until the maintenance ends."</p>
        </section>
    }
    .into_any()
}

#[component]
fn AddServer(servers: Rows, close: Callback<()>) -> impl IntoView {
    let page = Page::expect();
    let [config, hostname, cost, address, file, comment] = [(); 6].map(|()| RwSignal::new(String::new()));
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
            let said = |field: RwSignal<String>| {
                Some(field.get_untracked().trim().to_owned()).filter(|text| !text.is_empty())
            };
            let request = CreateServer {
                p_config_code: config.get_untracked(),
                p_hostname: hostname.get_untracked().trim().to_owned(),
                p_ip_address: said(address),
                p_bootstrap_script_filename: said(file),
                p_comment: said(comment),
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
                    <label class="field span-4"><span class="field-label">"IP address, optional"</span><input class="control key" placeholder="10.20.0.4" data-testid="ip-address" bind:value=address/></label>
                    <label class="field span-4"><span class="field-label">"File name of the bootstrap script"</span><input class="control key" placeholder="agent-bootstrap.sh" bind:value=file/></label>
                    <label class="field span-4"><span class="field-label">"Comment, optional"</span><input class="control" placeholder="rack 4" bind:value=comment/></label>
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
