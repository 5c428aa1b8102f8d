//! A proxy in front of a database, with which a test spoils the way there.
//!
//! It copies bytes between whoever connects and a port of this machine, and does nothing else until it is told to. What
//! is spoiled is a connection, never a byte: TCP has none that are wrong, it has some that come late and some that never
//! come.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How the way is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Whatever is read at once goes on later.
    Delay(Duration),
    /// Nothing goes on until the fault is gone; then everything does.
    Stall,
    /// Nothing goes on, and what was connected meanwhile never hears anything again: the way forgot about it.
    BlackHole,
    /// Connections are taken and closed at once; those that are open stay.
    Refuse,
    /// The first half of an answer goes on, and then the connection ends.
    Halve,
    /// A request that has these bytes in it does not go on, and the connection ends.
    LoseRequest(&'static [u8]),
    /// A request that has these bytes in it goes on, and in place of its answer the connection ends.
    LoseAnswer(&'static [u8]),
}

/// A proxy that runs until it is dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: AtomicU16,
    state: Mutex<State>,
    changed: Condvar,
    came: AtomicUsize,
    lost: AtomicUsize,
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    has_ended: bool,
    pairs: Vec<Arc<Pair>>,
}

/// A connection: its two ends, and what became of it.
struct Pair {
    ends: [TcpStream; 2],
    has_ended: AtomicBool,
    is_forgotten: AtomicBool,
    loses_answer: AtomicBool,
    /// Set once half of an answer is on its way.
    is_halved: AtomicBool,
}

/// The two ways on a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Proxy {
    /// Starts a proxy in front of a port of this machine.
    ///
    /// # Panics
    ///
    /// Fails where there is no free port.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            target: AtomicU16::new(target),
            state: Mutex::default(),
            changed: Condvar::new(),
            came: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        });
        let accepting = shared.clone();
        thread::spawn(move || accepting.accept(&listener));
        Self { port, shared }
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Spoils the way from now on.
    pub fn spoil(&self, fault: Fault) {
        let mut state = self.shared.lock();
        state.fault = Some(fault);
        if fault == Fault::BlackHole {
            for pair in &state.pairs {
                pair.is_forgotten.store(true, Ordering::SeqCst);
            }
        }
        self.shared.changed.notify_all();
    }

    /// Lets everything through again.
    pub fn resume(&self) {
        self.shared.lock().fault = None;
        self.shared.changed.notify_all();
    }

    /// Leads those who connect from now on to another port.
    pub fn aim(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
    }

    /// Ends all connections at once, and tells how many there were.
    pub fn cut(&self) -> usize {
        let pairs = std::mem::take(&mut self.shared.lock().pairs);
        let open = pairs.iter().filter(|pair| pair.cut());
        open.count()
    }

    /// Tells how many connections came so far, also those that were refused.
    pub fn came(&self) -> usize {
        self.shared.came.load(Ordering::SeqCst)
    }

    /// Tells how many requests and answers were lost or halved so far.
    pub fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().has_ended = true;
        self.shared.changed.notify_all();
        self.cut();
        // The thread that accepts looks up once somebody comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            let fault = {
                let state = self.lock();
                if state.has_ended {
                    return;
                }
                state.fault
            };
            self.came.fetch_add(1, Ordering::SeqCst);
            // A database that is gone ends the connection as soon as it was made.
            if let (Ok(client), true) = (client, fault != Some(Fault::Refuse))
                && let Ok(server) =
                    TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst)))
            {
                self.join(client, server, fault == Some(Fault::BlackHole));
            }
        }
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream, is_forgotten: bool) {
        let pair = Arc::new(Pair {
            ends: [client, server],
            has_ended: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(is_forgotten),
            loses_answer: AtomicBool::new(false),
            is_halved: AtomicBool::new(false),
        });
        {
            let mut state = self.lock();
            state.pairs.retain(|pair| !pair.has_ended());
            state.pairs.push(pair.clone());
        }
        for way in [Way::There, Way::Back] {
            let (shared, pair) = (self.clone(), pair.clone());
            thread::spawn(move || {
                // However it ends, the other way ends with it.
                let _ = shared.copy(&pair, way);
                pair.cut();
            });
        }
    }

    fn copy(&self, pair: &Pair, way: Way) -> std::io::Result<()> {
        let [client, server] = &pair.ends;
        let (mut from, mut to) = match way {
            Way::There => (client, server),
            Way::Back => (server, client),
        };
        to.set_nodelay(true)?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let len = from.read(&mut chunk)?;
            let Some(len) = (len > 0)
                .then(|| self.pass(pair, way, &chunk[..len]))
                .flatten()
            else {
                return Ok(());
            };
            to.write_all(&chunk[..len])?;
            if pair.is_halved.load(Ordering::SeqCst) && way == Way::Back {
                return Ok(());
            }
        }
    }

    /// Waits until a chunk may go on, and tells how much of it does; `None` ends the connection.
    fn pass(&self, pair: &Pair, way: Way, chunk: &[u8]) -> Option<usize> {
        if pair.loses_answer.load(Ordering::SeqCst) && way == Way::Back {
            self.lost.fetch_add(1, Ordering::SeqCst);
            return None;
        }
        let fault = self.lock().fault;
        if let Some(Fault::Delay(delay)) = fault {
            thread::sleep(delay);
        }
        let mut state = self.lock();
        loop {
            let is_forgotten = pair.is_forgotten.load(Ordering::SeqCst);
            match state.fault {
                _ if state.has_ended || pair.has_ended() => return None,
                _ if is_forgotten => {}
                Some(Fault::Stall | Fault::BlackHole) => {}
                Some(Fault::Halve) if way == Way::Back => {
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    pair.is_halved.store(true, Ordering::SeqCst);
                    return Some(chunk.len() / 2);
                }
                Some(Fault::LoseRequest(mark)) if way == Way::There && holds(chunk, mark) => {
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    return None;
                }
                Some(Fault::LoseAnswer(mark)) if way == Way::There => {
                    let is_it = holds(chunk, mark);
                    pair.loses_answer.store(is_it, Ordering::SeqCst);
                    return Some(chunk.len());
                }
                _ => return Some(chunk.len()),
            }
            // Looked at again now and then, since a connection may end by itself.
            let wait = self.changed.wait_timeout(state, Duration::from_millis(50));
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn holds(chunk: &[u8], mark: &[u8]) -> bool {
    chunk.windows(mark.len()).any(|found| found == mark)
}

impl Pair {
    /// Ends the connection; tells whether it was open.
    fn cut(&self) -> bool {
        // Noted first: whoever copies wakes up at once, and would note it instead.
        let was_open = !self.has_ended.swap(true, Ordering::SeqCst);
        for end in &self.ends {
            // Whoever is gone already need not be told.
            let _ = end.shutdown(Shutdown::Both);
        }
        was_open
    }

    /// Tells whether the connection was ended.
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that answers each line with the same line.
    fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut chunk = [0; 64];
                    while let Ok(len @ 1..) = stream.read(&mut chunk) {
                        let _ = stream.write_all(&chunk[..len]);
                    }
                });
            }
        });
        port
    }

    fn open(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        stream
    }

    /// Asks over a connection; an answer that is cut off is what there was of it, and none that never came is `None`.
    fn ask(mut stream: &TcpStream, text: &str) -> Option<String> {
        stream.write_all(text.as_bytes()).ok()?;
        hear(stream, text.len())
    }

    fn hear(mut stream: &TcpStream, len: usize) -> Option<String> {
        let (mut answer, mut chunk) = (Vec::new(), [0; 64]);
        while answer.len() < len {
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(len) => answer.extend_from_slice(&chunk[..len]),
                Err(_) => return None,
            }
        }
        String::from_utf8(answer).ok()
    }

    #[test]
    fn what_is_stalled_goes_on_and_what_is_forgotten_never_does() {
        let proxy = Proxy::start(echo());
        let stream = open(&proxy);
        assert_eq!(ask(&stream, "first").as_deref(), Some("first"));
        proxy.spoil(Fault::Stall);
        assert_eq!(ask(&stream, "late"), None);
        proxy.resume();
        assert_eq!(hear(&stream, 4).as_deref(), Some("late"));
        assert_eq!(ask(&stream, "more").as_deref(), Some("more"));
        proxy.spoil(Fault::BlackHole);
        let meanwhile = open(&proxy);
        assert_eq!(ask(&meanwhile, "never"), None);
        proxy.resume();
        assert_eq!(ask(&stream, "never"), None);
        assert_eq!(ask(&meanwhile, "never"), None);
        assert_eq!(ask(&open(&proxy), "new").as_deref(), Some("new"));
    }

    #[test]
    fn connections_are_cut_and_refused() {
        let proxy = Proxy::start(echo());
        let stream = open(&proxy);
        assert_eq!(ask(&stream, "first").as_deref(), Some("first"));
        assert_eq!(proxy.cut(), 1);
        assert_eq!(ask(&stream, "second").unwrap_or_default(), "");
        proxy.spoil(Fault::Refuse);
        assert_eq!(ask(&open(&proxy), "third").unwrap_or_default(), "");
        proxy.resume();
        assert_eq!(ask(&open(&proxy), "fourth").as_deref(), Some("fourth"));
        assert_eq!(proxy.came(), 3);
    }

    #[test]
    fn answers_are_halved_and_lost() {
        let proxy = Proxy::start(echo());
        proxy.spoil(Fault::Halve);
        assert_eq!(ask(&open(&proxy), "four").as_deref(), Some("fo"));
        proxy.spoil(Fault::LoseAnswer(b"commit"));
        let stream = open(&proxy);
        assert_eq!(ask(&stream, "begin").as_deref(), Some("begin"));
        assert_eq!(ask(&stream, "a commit").as_deref(), Some(""));
        assert_eq!(proxy.lost(), 2);
        proxy.spoil(Fault::LoseRequest(b"commit"));
        let stream = open(&proxy);
        assert_eq!(ask(&stream, "begin").as_deref(), Some("begin"));
        assert_eq!(ask(&stream, "a commit").unwrap_or_default(), "");
        assert_eq!(proxy.lost(), 3);
    }
}
