//! Headless Chromium, driven as a person would.
//!
//! ChromeDriver runs in a process group of its own that is killed whatever happens: a test that dies must not leave
//! browsers behind.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::binaries::repository;
use crate::eventually;
use crate::process::Process;

/// A browser window.
pub struct Browser {
    /// The WebDriver session.
    pub client: Client,
    _driver: Process,
    _profile: tempfile::TempDir,
    base: String,
}

/// How the window is set up.
#[derive(Clone, Copy)]
pub struct Window {
    /// Width in CSS pixels.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// Whether the reader prefers dark.
    pub dark: bool,
}

/// A desk.
pub const DESKTOP: Window = Window { width: 1440, height: 1000, dark: false };
/// A phone.
pub const PHONE: Window = Window { width: 390, height: 844, dark: false };

impl Browser {
    /// Opens a fresh browser with an empty profile.
    pub async fn open(base: &str, window: Window) -> Self {
        let profile = tempfile::Builder::new().prefix("bt-chromium-").tempdir().expect("a profile folder");
        let log = profile.path().join("chromedriver.log");
        let mut command = Command::new("chromedriver");
        command.arg("--port=0");
        let mut driver = Process::start("chromedriver", command, &log);
        let port: u16 = eventually("chromedriver to say its port", || async {
            let text = std::fs::read_to_string(&log).ok()?;
            let after = text.split("started successfully on port ").nth(1)?;
            after.trim_end().trim_end_matches('.').lines().next()?.trim_end_matches('.').parse().ok()
        })
        .await;
        driver.assert_running();

        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--no-first-run".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={},{}", window.width, window.height),
            format!("--user-data-dir={}", profile.path().join("data").display()),
        ];
        if window.dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let mut options = json!({"args": arguments});
        if window.width < 500 {
            options["mobileEmulation"] =
                json!({"deviceMetrics": {"width": window.width, "height": window.height, "pixelRatio": 2.0}});
        }
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        capabilities.insert("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a browser session");
        Self { client, _driver: driver, _profile: profile, base: base.to_owned() }
    }

    /// Goes to a path of the page.
    pub async fn goto(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap_or_else(|e| panic!("{path}: {e}"));
    }

    /// Signs in by the form.
    pub async fn sign_in(&self, email: &str, password: &str) {
        self.goto("/sign-in").await;
        self.fill("email", email).await;
        self.fill("password", password).await;
        self.click("submit").await;
        self.see("rail").await;
    }

    /// Waits for an element with this `data-testid`.
    pub async fn see(&self, testid: &str) -> fantoccini::elements::Element {
        self.find_css(&format!("[data-testid=\"{testid}\"]")).await
    }

    /// Waits for an element.
    pub async fn find_css(&self, css: &str) -> fantoccini::elements::Element {
        match self.client.wait().at_most(Duration::from_secs(30)).for_element(Locator::Css(css)).await {
            Ok(element) => element,
            Err(error) => {
                let path = self.picture_of_failure().await;
                panic!(
                    "{css} did not appear at {:?} ({error}); see {}",
                    self.client.current_url().await,
                    path.display()
                )
            }
        }
    }

    async fn picture_of_failure(&self) -> PathBuf {
        let path = std::env::temp_dir().join(format!("benchtrail-failure-{}.png", std::process::id()));
        if let Ok(png) = self.client.screenshot().await {
            let _ = std::fs::write(&path, png);
        }
        path
    }

    /// How many elements match.
    pub async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.map_or(0, |found| found.len())
    }

    /// Clicks an element with this `data-testid`.
    pub async fn click(&self, testid: &str) {
        self.click_css(&format!("[data-testid=\"{testid}\"]")).await;
    }

    /// Clicks an element, scrolled into view first.
    pub async fn click_css(&self, css: &str) {
        self.find_css(css).await;
        let script = "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});";
        self.run(script, json!([css])).await;
        // A live page may draw the element anew between finding and clicking it: then it is found again.
        for _ in 0..20 {
            match self.find_css(css).await.click().await {
                Ok(()) => return,
                Err(error) if error.is_stale_element_reference() => {}
                Err(error) => panic!("{css}: {error}"),
            }
        }
        panic!("{css}: drawn anew at every click");
    }

    /// Types into a field, replacing what it held.
    pub async fn fill(&self, testid: &str, text: &str) {
        let element = self.see(testid).await;
        element.clear().await.expect("a field");
        element.send_keys(text).await.expect("a field");
    }

    /// Chooses an option of a select by its value.
    pub async fn choose(&self, testid: &str, value: &str) {
        let css = format!("[data-testid=\"{testid}\"] option[value=\"{value}\"]");
        self.find_css(&css).await;
        let element = self.see(testid).await;
        element.select_by_value(value).await.unwrap_or_else(|e| panic!("{testid} = {value}: {e}"));
    }

    /// The visible text of an element.
    pub async fn text(&self, testid: &str) -> String {
        self.see(testid).await.text().await.unwrap_or_default()
    }

    /// Waits until a script yields something true.
    pub async fn until(&self, what: &str, script: &str) -> Value {
        eventually(what, || async {
            let value = self.client.execute(script, vec![]).await.ok()?;
            (!matches!(value, Value::Null | Value::Bool(false))).then_some(value)
        })
        .await
    }

    /// Runs a script in the page.
    pub async fn run(&self, script: &str, arguments: Value) -> Value {
        let arguments = arguments.as_array().cloned().unwrap_or_default();
        self.client.execute(script, arguments).await.unwrap_or_else(|e| panic!("{script}: {e}"))
    }

    /// Runs a script that calls its last argument when it is done.
    pub async fn run_async(&self, script: &str) -> Value {
        self.client.execute_async(script, vec![]).await.unwrap_or_else(|e| panic!("{script}: {e}"))
    }

    /// A command of the browser's own protocol, such as `Page.setWebLifecycleState`.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let command = DevTools { command: command.to_owned(), parameters };
        self.client.issue_cmd(command).await.unwrap_or_else(|e| panic!("devtools: {e}"))
    }

    /// Saves a screenshot under `docs/screens/`.
    pub async fn screenshot(&self, name: &str) {
        let png = self.client.screenshot().await.expect("a screenshot");
        let path = screens().join(format!("{name}.png"));
        std::fs::create_dir_all(screens()).expect("docs/screens");
        std::fs::write(&path, png).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Errors in the browser's console: violated content security policy, exceptions, failed loads. That something does
    /// not exist (yet) is an answer, not an error.
    pub async fn console_errors(&self) -> Vec<String> {
        let entries = self.client.issue_cmd(ConsoleLog).await.expect("the browser's log");
        let of_level = |e: &&Value| {
            e["level"] == "SEVERE" && !e["message"].as_str().is_some_and(|m| m.contains("status of 404"))
        };
        entries.as_array().into_iter().flatten().filter(of_level).map(|e| e["message"].to_string()).collect()
    }

    /// Closes the window.
    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

/// Where screenshots are kept: in the repository, or in `BENCHTRAIL_SCREENS`.
pub fn screens() -> PathBuf {
    std::env::var_os("BENCHTRAIL_SCREENS")
        .map_or_else(|| repository().join("docs/screens"), |p| Path::new(&p).to_owned())
}

/// A command of Chromium's DevTools protocol, by way of ChromeDriver.
#[derive(Debug)]
struct DevTools {
    command: String,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({"cmd": self.command, "params": self.parameters}).to_string()))
    }
}

/// ChromeDriver's own command for the browser's console.
#[derive(Debug)]
struct ConsoleLog;

impl WebDriverCompatibleCommand for ConsoleLog {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({"type": "browser"}).to_string()))
    }
}
