//! Chromium without a window, driven by the Chrome DevTools Protocol over two pipes: no port is
//! opened, no driver is needed, and the browser ends when the pipes close. It never sees a network:
//! all names and addresses but 127.0.0.1 lead nowhere, and most pages are files.

use base64::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

/// Without its own housekeeping, which would look for a network.
const ARGUMENTS: [&str; 18] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    // A click before the first frame is otherwise thrown away.
    "--allow-pre-commit-input",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
];
/// The protocol's pipes are descriptors 3 (to the browser) and 4.
const WITH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 0</dev/null 1>&2"#;
/// For any answer, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running browser; tests that run at the same time share it.
pub(crate) struct Browser {
    to: Mutex<(ChildStdin, u64)>,
    inbox: Arc<Inbox>,
    child: Mutex<Child>,
    _profile: tempfile::TempDir,
}

#[derive(Default)]
struct Inbox {
    state: Mutex<Received>,
    changed: Condvar,
}

#[derive(Default)]
struct Received {
    replies: BTreeMap<u64, Value>,
    /// What went wrong in a page, by session.
    trouble: BTreeMap<String, Vec<String>>,
    closed: bool,
}

static RUNNING: Mutex<Weak<Browser>> = Mutex::new(Weak::new());

/// The browser, started when none runs. `None`, with the reason printed, when there is none and
/// none must be there.
pub(crate) fn browser() -> Option<Arc<Browser>> {
    let mut running = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(browser) = running.upgrade() {
        return Some(browser);
    }
    let found = [
        "/usr/bin/chromium",
        "/usr/bin/chromium-browser",
        "/usr/bin/google-chrome",
    ]
    .into_iter()
    .find(|path| Path::new(path).exists());
    let Some(found) = found else {
        let must_run = ["CI", "EASTWEST_MUST_RUN"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        assert!(
            !must_run,
            "chromium is not installed; scripts/setup.sh installs it"
        );
        println!("skipped: chromium is not installed (scripts/setup.sh installs it)");
        return None;
    };
    let browser = Arc::new(Browser::start(found));
    *running = Arc::downgrade(&browser);
    Some(browser)
}

impl Browser {
    fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", WITH_PIPES, "sh", program])
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let inbox = Arc::new(Inbox::default());
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let reader = Arc::clone(&inbox);
        std::thread::spawn(move || read(from, &reader));
        Self {
            to: Mutex::new((to, 0)),
            inbox,
            child: Mutex::new(child),
            _profile: profile,
        }
    }

    fn send(&self, session: Option<&str>, method: &str, params: &Value) -> u64 {
        let mut to = self.to.lock().unwrap();
        to.1 += 1;
        let mut message = json!({"id": to.1, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        to.0.write_all(format!("{message}\0").as_bytes()).unwrap();
        to.1
    }

    fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let id = self.send(session, method, params);
        // Not while other tests' answers are locked: they go on where this one panics.
        let reply = self.inbox.reply(id);
        let reply = reply.unwrap_or_else(|silence| panic!("{method}: {silence}"));
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }
}

impl Inbox {
    fn reply(&self, id: u64) -> Result<Value, String> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(reply) = state.replies.remove(&id) {
                return Ok(reply);
            }
            if state.closed {
                return Err("the browser ended".to_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("no answer in {PATIENCE:?}"));
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.send(None, "Browser.close", &json!({}));
        let child = self.child.get_mut().unwrap_or_else(|e| e.into_inner());
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn read(from: ChildStdout, inbox: &Inbox) {
    let mut from = BufReader::new(from);
    let mut message = Vec::new();
    while matches!(from.read_until(0, &mut message), Ok(1..)) {
        message.pop();
        let value: Value = serde_json::from_slice(&message).unwrap_or(Value::Null);
        message.clear();
        let mut state = inbox.state.lock().unwrap();
        if let Some(id) = value["id"].as_u64() {
            state.replies.insert(id, value);
        } else if let Some(text) = trouble(&value) {
            let session = value["sessionId"].as_str().unwrap_or_default().to_owned();
            state.trouble.entry(session).or_default().push(text);
        }
        inbox.changed.notify_all();
    }
    inbox.state.lock().unwrap().closed = true;
    inbox.changed.notify_all();
}

/// An error of a page's script, or of what it loads.
fn trouble(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Log.entryAdded" if params["entry"]["level"] == "error" => {
            Some(params["entry"]["text"].to_string())
        }
        _ => None,
    }
}

/// How a page is looked at.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

/// A window on a desk.
pub(crate) const DESK: View = View {
    width: 1280,
    height: 800,
    dark: false,
};
/// A telephone.
pub(crate) const PHONE: View = View {
    width: 390,
    height: 844,
    dark: false,
};

/// A page that is open. At its end it must have had no error.
pub(crate) struct Tab {
    browser: Arc<Browser>,
    target: String,
    session: String,
}

/// A box in the window, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    fn centre(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }
}

impl Tab {
    /// Opens a file and waits until it is there.
    pub(crate) fn open(browser: &Arc<Browser>, file: &Path, view: View) -> Self {
        Self::open_url(browser, &format!("file://{}", file.display()), view)
    }

    /// The same of any page.
    pub(crate) fn open_url(browser: &Arc<Browser>, url: &str, view: View) -> Self {
        let created = browser.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let target = created["targetId"].as_str().unwrap().to_owned();
        let attach = json!({"targetId": target, "flatten": true});
        let attached = browser.call(None, "Target.attachToTarget", &attach);
        let tab = Self {
            browser: Arc::clone(browser),
            session: attached["sessionId"].as_str().unwrap().to_owned(),
            target,
        };
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab.look_as(view);
        tab.call("Page.navigate", &json!({"url": url}));
        tab.until("location.protocol !== 'about:' && document.readyState === 'complete'");
        // As a window that is in front, so that frames are drawn and keys arrive.
        tab.call(
            "Emulation.setFocusEmulationEnabled",
            &json!({"enabled": true}),
        );
        tab.drawn();
        tab
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    /// Looks at the open page in another way, and waits for the frame in which its listeners
    /// learn of it.
    pub(crate) fn resize(&self, view: View) {
        self.look_as(view);
        self.drawn();
    }

    /// Waits for the next frame: what was scrolled is there, and listeners know of it.
    fn drawn(&self) {
        self.eval("new Promise((drawn) => { requestAnimationFrame(() => drawn()); })");
    }

    fn look_as(&self, view: View) {
        let metrics = json!({"width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if view.dark { "dark" } else { "light" };
        self.media("", scheme);
    }

    /// "print" or "" for the screen.
    pub(crate) fn media(&self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"media": media, "features": features}),
        );
    }

    /// The value of an expression, promises awaited.
    pub(crate) fn eval(&self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &asked);
        let thrown = answer.get("exceptionDetails");
        assert!(
            thrown.is_none(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    pub(crate) fn number(&self, expression: &str) -> f64 {
        let value = self.eval(expression);
        value
            .as_f64()
            .unwrap_or_else(|| panic!("{expression} is {value}"))
    }

    pub(crate) fn text(&self, selector: &str) -> String {
        let value = self.eval(&format!(
            "document.querySelector({})?.textContent",
            json!(selector)
        ));
        value
            .as_str()
            .unwrap_or_else(|| panic!("no {selector}"))
            .to_owned()
    }

    pub(crate) fn is(&self, expression: &str) -> bool {
        self.eval(&format!("Boolean({expression})")) == json!(true)
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.is(expression) {
            assert!(Instant::now() < until, "never: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where an element is in the window.
    pub(crate) fn area(&self, selector: &str) -> Area {
        let script = format!(
            "(() => {{ const b = document.querySelector({}).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()",
            json!(selector)
        );
        let value = self.eval(&script);
        let at = |index: usize| value[index].as_f64().unwrap();
        Area {
            x: at(0),
            y: at(1),
            width: at(2),
            height: at(3),
        }
    }

    /// Presses and lifts the button in the middle of an element.
    pub(crate) fn click(&self, selector: &str) {
        let (x, y) = self.scrolled_to(selector).centre();
        self.click_at(x, y);
    }

    /// Where an element is once it is in the window, and two frames have it in the same place: a
    /// page that is just there may take a scroll back.
    fn scrolled_to(&self, selector: &str) -> Area {
        let scroll = format!(
            "document.querySelector({}).scrollIntoView({{block: 'center', behavior: 'instant'}})",
            json!(selector)
        );
        let until = Instant::now() + PATIENCE;
        let mut before = None;
        while Instant::now() < until {
            self.eval(&scroll);
            self.drawn();
            let now = self.area(selector);
            let is_seen = now.y < self.number("innerHeight") && now.bottom() > 0.0;
            if is_seen && before == Some(now) {
                return now;
            }
            before = Some(now);
        }
        panic!("{selector} does not come into the window")
    }

    pub(crate) fn click_at(&self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y);
        self.mouse("mousePressed", x, y);
        self.mouse("mouseReleased", x, y);
    }

    pub(crate) fn mouse(&self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// The left button stays down on the way.
    pub(crate) fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from.0, from.1);
        self.mouse("mousePressed", from.0, from.1);
        for step in 1..=8 {
            let part = f64::from(step) / 8.0;
            let (x, y) = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            let event =
                json!({"type": "mouseMoved", "x": x, "y": y, "button": "left", "buttons": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
        self.mouse("mouseReleased", to.0, to.1);
    }

    /// The wheel with the Ctrl key.
    pub(crate) fn ctrl_wheel(&self, x: f64, y: f64, delta: f64) {
        let event = json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta, "modifiers": 2});
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// One key, by its name in DOM events.
    pub(crate) fn key(&self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "PageUp" => 33,
            "PageDown" => 34,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            " " => 32,
            other => other
                .chars()
                .next()
                .map_or(0, |c| c.to_ascii_uppercase() as u32),
        };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if key.chars().count() == 1 {
            down["text"] = json!(key);
        } else if key == "Enter" {
            down["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", &down);
        self.call(
            "Input.dispatchKeyEvent",
            &json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
        );
    }

    /// The window as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let taken = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        decoded(&taken["data"])
    }

    /// A5 to A4 as in the page's own style.
    pub(crate) fn pdf(&self) -> Vec<u8> {
        let printed = self.call(
            "Page.printToPDF",
            &json!({"preferCSSPageSize": true, "printBackground": true}),
        );
        decoded(&printed["data"])
    }

    /// What went wrong in the page so far.
    pub(crate) fn trouble(&self) -> Vec<String> {
        let state = self.browser.inbox.state.lock().unwrap();
        state
            .trouble
            .get(&self.session)
            .cloned()
            .unwrap_or_default()
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let trouble = self.trouble();
        self.browser.send(
            None,
            "Target.closeTarget",
            &json!({"targetId": self.target}),
        );
        if !std::thread::panicking() {
            assert!(trouble.is_empty(), "errors in the page: {trouble:#?}");
        }
    }
}

fn decoded(data: &Value) -> Vec<u8> {
    let engine = base64::engine::general_purpose::STANDARD;
    engine.decode(data.as_str().unwrap()).unwrap()
}
