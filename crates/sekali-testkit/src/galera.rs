//! A private cluster of MariaDB servers: Galera, where each member has all the data and takes writes.

use tempfile::TempDir;

use crate::mariadb::MariaDb;

const LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";
const SETTINGS: &[&str] = &[
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--wsrep-on=ON",
    "--wsrep-cluster-name=sekali",
    "--wsrep-node-address=127.0.0.1",
    "--wsrep-sst-method=rsync",
];

/// A cluster.
pub struct Galera {
    members: Vec<Member>,
}

struct Member {
    /// Of the server, of the group, of increments and of snapshots.
    ports: [u16; 4],
    state: State,
}

enum State {
    Up(MariaDb),
    /// Killed; its folder waits for the next start.
    Down(TempDir),
    /// On the way from one to the other, or not started yet.
    Between,
}

impl Galera {
    /// Starts a cluster of so many members.
    ///
    /// # Panics
    ///
    /// A member that cannot be started fails the test.
    pub fn start(len: usize) -> Self {
        assert!(
            std::path::Path::new(LIBRARY).is_file(),
            "Galera is missing: install it with `apt-get install galera-4`"
        );
        // A new member gets its first copy of the data by it.
        crate::program("rsync", "rsync", &[]);
        let member = |_| Member {
            ports: std::array::from_fn(|_| low_port()),
            state: State::Between,
        };
        let mut cluster = Self {
            members: (0..len).map(member).collect(),
        };
        for member in 0..len {
            let folder = MariaDb::prepare();
            cluster.run(member, folder, member == 0);
        }
        cluster
    }

    /// Returns how many members there are, whether they run or not.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns a member.
    ///
    /// # Panics
    ///
    /// A member that was killed cannot be had.
    pub fn member(&self, member: usize) -> &MariaDb {
        match &self.members[member].state {
            State::Up(server) => server,
            State::Down(_) | State::Between => panic!("member {member} is down"),
        }
    }

    /// Returns a member that runs.
    ///
    /// # Panics
    ///
    /// Fails where none does.
    pub fn any(&self) -> &MariaDb {
        let up = self.members.iter().find_map(|member| match &member.state {
            State::Up(server) => Some(server),
            State::Down(_) | State::Between => None,
        });
        up.expect("a member runs")
    }

    /// Kills a member; the others go on without it.
    ///
    /// # Panics
    ///
    /// Fails where it is down already.
    pub fn kill(&mut self, member: usize) {
        let state = &mut self.members[member].state;
        let State::Up(server) = std::mem::replace(state, State::Between) else {
            panic!("member {member} is down already");
        };
        let (folder, _) = server.kill();
        *state = State::Down(folder);
    }

    /// Starts a member that was killed; it gets what it missed from the others.
    ///
    /// # Panics
    ///
    /// Fails where it runs, or does not start.
    pub fn resume(&mut self, member: usize) {
        let state = &mut self.members[member].state;
        let State::Down(folder) = std::mem::replace(state, State::Between) else {
            panic!("member {member} runs");
        };
        self.run(member, folder, false);
    }

    fn run(&mut self, member: usize, folder: TempDir, is_first: bool) {
        let groups = self.members.iter();
        let groups = groups.map(|member| format!("127.0.0.1:{}", member.ports[1]));
        let groups: Vec<String> = groups.collect();
        let [port, group, increments, snapshots] = self.members[member].ports;
        let mut arguments: Vec<String> = SETTINGS.iter().map(|text| (*text).to_owned()).collect();
        arguments.extend([
            format!("--wsrep-provider={LIBRARY}"),
            format!("--wsrep-node-name=member-{member}"),
            format!("--wsrep-cluster-address=gcomm://{}", groups.join(",")),
            format!("--wsrep-sst-receive-address=127.0.0.1:{snapshots}"),
            format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};\
                 ist.recv_addr=127.0.0.1:{increments};gcache.size=16M;pc.recovery=no"
            ),
        ]);
        arguments.extend(is_first.then(|| "--wsrep-new-cluster".to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.members[member].state = State::Up(MariaDb::resume(folder, port, &arguments));
    }
}

/// Finds a free port below those that the system gives to whoever connects, and that are free only for a moment.
fn low_port() -> u16 {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut ports = std::iter::repeat_with(|| fastrand::u16(15_000..32_000));
    ports.find(is_free).unwrap()
}
