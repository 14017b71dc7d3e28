//! A program on a pseudo-terminal: send keys, wait for text, resize, send signals, read the terminal's state.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

/// Longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the terminal shows, and how often it was written to.
struct Shown {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    closed: bool,
}

/// A program running on a pseudo-terminal.
pub struct Pty {
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Pty {
    /// Starts `program` with `args` on a terminal of `columns` × `rows` cells. The environment is made plain, so that
    /// tests do not depend on that of the person who runs them.
    pub fn spawn(program: &Path, args: &[&str], env: &[(&str, &str)], (columns, rows): (u16, u16)) -> Self {
        let size = size(columns, rows);
        let pair = native_pty_system().openpty(size).expect("a pty");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        for (name, value) in
            [("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8"), ("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")]
                .iter()
                .chain(env)
        {
            command.env(name, value);
        }
        command.cwd(std::env::temp_dir());
        let child = pair.slave.spawn_command(command).expect("a child");
        // The reader sees the end only when no one else holds the slave.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        let shown = Arc::new((
            Mutex::new(Shown { parser: vt100::Parser::new(rows, columns, 0), bytes: Vec::new(), closed: false }),
            Condvar::new(),
        ));
        let sink = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut buffer = [0; 1 << 14];
            loop {
                let n = reader.read(&mut buffer).unwrap_or(0);
                let mut shown = sink.0.lock().expect("not poisoned");
                if n == 0 {
                    shown.closed = true;
                } else {
                    shown.parser.process(&buffer[..n]);
                    shown.bytes.extend_from_slice(&buffer[..n]);
                }
                sink.1.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        Self { master: pair.master, writer, child, shown }
    }

    /// Types `keys`, as the bytes that a terminal sends.
    pub fn send(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).expect("typed");
        self.writer.flush().expect("typed");
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let mut shown = self.shown.0.lock().expect("not poisoned");
        shown.parser.screen_mut().set_size(rows, columns);
        drop(shown);
        self.master.resize(size(columns, rows)).expect("resized");
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.process_id().expect("a running child");
        let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
        assert!(sent.expect("kill").success(), "signal {name}");
    }

    /// Whether the process is stopped now (as by Ctrl-Z); from the state that the kernel tells.
    pub fn wait_stopped(&self) {
        let pid = self.child.process_id().expect("a running child");
        let start = Instant::now();
        loop {
            let output = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().expect("ps");
            if String::from_utf8_lossy(&output.stdout).starts_with('T') {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "not stopped");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen fits; what it showed last is in the failure.
    pub fn wait(&self, what: &str, fits: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        let mut shown = self.shown.0.lock().expect("not poisoned");
        while !fits(shown.parser.screen()) {
            let left = PATIENCE.saturating_sub(start.elapsed());
            assert!(
                !left.is_zero() && !shown.closed,
                "waited for {what}; the screen shows:\n{}",
                shown.parser.screen().contents()
            );
            shown = self.shown.1.wait_timeout(shown, left).expect("wait").0;
        }
    }

    /// Waits until the screen shows `text`.
    pub fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    /// The text on the screen.
    pub fn text(&self) -> String {
        let shown = self.shown.0.lock().expect("not poisoned");
        shown.parser.screen().contents()
    }

    /// Everything written to the terminal so far.
    pub fn written(&self) -> Vec<u8> {
        self.shown.0.lock().expect("not poisoned").bytes.clone()
    }

    /// Number of bytes that are written to the terminal within `time`.
    pub fn written_within(&self, time: Duration) -> usize {
        let before = self.written().len();
        std::thread::sleep(time);
        self.written().len() - before
    }

    /// Asserts that the terminal is as a program must leave it: main screen, cursor shown, no paste or mouse mode.
    pub fn assert_restored(&self) {
        self.wait("the terminal given back", restored);
    }

    /// Whether the program ends within `time`.
    pub fn ended_within(&mut self, time: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < time {
            if self.child.try_wait().expect("waited").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Waits for the end of the program and of its output; its exit status.
    pub fn finish(&mut self) -> ExitStatus {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waited") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "still running; the screen shows:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut shown = self.shown.0.lock().expect("not poisoned");
        while !shown.closed {
            let left = PATIENCE.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "output not closed");
            shown = self.shown.1.wait_timeout(shown, left).expect("wait").0;
        }
        // Lines are read and keys are shown again.
        if let Some(mode) = self.master.get_termios() {
            let flags = format!("{:?}", mode.local_flags);
            assert!(flags.contains("ICANON") && flags.contains("ECHO"), "the terminal is raw: {flags}");
        }
        assert!(
            restored(shown.parser.screen()),
            "the terminal was not given back: {:?}",
            String::from_utf8_lossy(&shown.parser.screen().input_mode_formatted())
        );
        status
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn restored(screen: &vt100::Screen) -> bool {
    !screen.alternate_screen()
        && !screen.hide_cursor()
        && !screen.bracketed_paste()
        && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}
