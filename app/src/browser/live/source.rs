//! The connection to the control plane: one EventSource with its handlers.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;

use super::Live;
use crate::browser::now_ms;
use crate::state::filters::percent;

/// An open connection with its handlers; dropping it closes it.
pub(super) struct Source {
    source: web_sys::EventSource,
    pub(super) topics: Vec<String>,
    _handlers: Vec<Closure<dyn FnMut(web_sys::MessageEvent)>>,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.source.set_onerror(None);
        self.source.close();
    }
}

/// Where the stream of some topics is, after a position.
pub(super) fn address(topics: &[String], after: Option<i64>) -> String {
    let mut url = format!("/api/live?topics={}", percent(&topics.join(",")));
    if let Some(after) = after {
        url.push_str(&format!("&after={after}"));
    }
    url
}

impl Live {
    pub(super) fn connect(self, topics: Vec<String>) {
        let after = self.inner.try_with_value(|inner| inner.cursor.resume()).flatten();
        let Ok(source) = web_sys::EventSource::new(&address(&topics, after)) else { return self.broken() };
        let on = |name: &str, handler: Box<dyn FnMut(web_sys::MessageEvent)>| {
            let closure = Closure::<dyn FnMut(web_sys::MessageEvent)>::wrap(handler);
            let _ = source.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
            closure
        };
        let data = |message: &web_sys::MessageEvent| message.data().as_string().unwrap_or_default();
        let handlers = vec![
            on("event", Box::new(move |message| self.pass_on("event", &data(&message), Self::on_event))),
            on("head", Box::new(move |message| self.pass_on("head", &data(&message), Self::on_head))),
            on("resync", Box::new(move |message| self.pass_on("resync", &data(&message), Self::on_resync))),
            on("error", Box::new(move |_| self.broken())),
        ];
        self.inner.try_update_value(|inner| {
            inner.cursor.connect();
            inner.last_message = now_ms();
            inner.source = Some(Source { source, topics, _handlers: handlers });
        });
        self.tell_open();
    }
}
