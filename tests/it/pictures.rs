//! The page of `stats` in `docs/images` is what the program writes, and how it looks in a browser.
//!
//! The latter is ignored; `make test-browser` installs Chromium and runs it. It leaves a picture for
//! people, `target/tmp/stats.png`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::skipped;
use crate::workspace::Workspace;

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images/stats.html")
}

#[test]
fn page_of_stats_is_that_of_the_sample_store() {
    let workspace = Workspace::over("reference").trusted();
    workspace.run(&["learn", "fixtures/sessions"]).succeeds();
    workspace.run(&["stats", "--html", "stats.html"]).succeeds();
    let page = fs::read_to_string(workspace.root().join("stats.html")).unwrap();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(kept(), &page).unwrap();
    }
    let kept = fs::read_to_string(kept()).unwrap_or_default();
    assert!(kept == page, "renew it: make reference");
}

/// Shows the page in frames of two widths, light and dark, and writes what it measures.
const LOOK: &str = r#"<!DOCTYPE html><body style="margin:0"><script>
const light = text => {
    const [r, g, b] = text.match(/\d+/g).map(v => v / 255)
        .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b + .05;
};
const looks = [];
for (const width of [400, 1280]) for (const scheme of ["light", "dark"]) {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:600px;border:0;display:block;color-scheme:${scheme}`;
    frame.onload = () => {
        const page = frame.contentDocument, pre = page.querySelector("pre");
        const styles = frame.contentWindow.getComputedStyle(pre);
        const color = light(styles.color);
        const ground = light((pre.style.color = "canvas", styles.color));
        pre.style.color = "";
        looks.push({
            width, scheme, needed: page.documentElement.scrollWidth,
            isWhole: /Benefit of memory.*REFL-001/s.test(page.body.innerText),
            font: parseFloat(styles.fontSize), isDark: ground < .5,
            contrast: Math.max(color, ground) / Math.min(color, ground),
        });
        if (looks.length == 4) {
            const out = document.createElement("pre");
            out.id = "looks";
            out.textContent = JSON.stringify(looks);
            document.body.append(out);
        }
    };
    frame.src = "stats.html";
    document.body.append(frame);
}
</script></body>"#;

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn page_of_stats_is_read_on_a_phone_and_on_a_screen_light_and_dark() {
    let workspace = Workspace::empty();
    fs::copy(kept(), workspace.root().join("stats.html")).unwrap();
    workspace.write("look.html", LOOK);
    let screen = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stats.png");
    drop(fs::remove_file(&screen));
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--allow-file-access-from-files", "--window-size=1280,2400"])
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--screenshot={}", screen.display()))
        .arg(format!(
            "--user-data-dir={}",
            workspace.home().join("c").display()
        ))
        .arg(format!(
            "file://{}",
            workspace.root().join("look.html").display()
        ))
        .env("HOME", workspace.home());
    let output = match chromium.output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("Chromium: {error}")),
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    let looks = dom
        .split_once("<pre id=\"looks\">")
        .expect("the page is measured")
        .1;
    let looks = looks.split_once("</pre>").unwrap().0;
    let looks: Vec<Value> = serde_json::from_str(looks).unwrap();
    assert_eq!(looks.len(), 4);
    for look in &looks {
        let number = |name: &str| look[name].as_f64().unwrap();
        // Wide tables scroll within the page, and the page itself does not.
        assert!(number("needed") <= number("width"), "{look}");
        assert!(number("contrast") >= 7.0, "{look}");
        assert!(number("font") >= 12.0, "{look}");
        assert_eq!(look["isDark"], look["scheme"] == "dark", "{look}");
        assert_eq!(look["isWhole"], true, "{look}");
    }
    assert!(screen.exists());
}
