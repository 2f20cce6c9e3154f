/** One reason why a run can see something different from the run before it in the same sandbox. */
export interface KnownDifference {
  /** The difference, as the page names it. */
  readonly what: string
  /** The places, as `supervisor/readable.py` names them. */
  readonly places: RegExp
  /** The reason why it is neither reset nor refused, and the data that it can carry. */
  readonly why: string
}

/** Every difference that a run may leave to the next one after it wrote everywhere. */
export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    what: 'gauges and counters of the machine in `/proc`, and on `docker` in `/sys`',
    places:
      /^\/proc\/(buddyinfo|cgroups|diskstats|fs\/|interrupts|irq\/|kpage|loadavg|locks|meminfo|modules|pagetypeinfo|pressure\/|schedstat|slabinfo|softirqs|stat|swaps|timer_list|uptime|vmallocinfo|vmstat|zoneinfo|sys\/fs\/(aio-nr|dentry-state|file-nr|inode-nr|inode-state|quota\/)|sys\/kernel\/(random\/|pty\/nr)|sys\/vm\/stat)|^\/sys\/(block|class|devices|fs\/(?!cgroup)[^/]+|kernel|module)\/|^(own|broker|zygote)\/net\/(stat\/|softnet_stat|protocols|sockstat|ptype)|^os\.getloadavg/,
    why: 'Everything on the machine changes them, including other sandboxes. A script can change them as well, so they are a side channel like the load of the machine. It is not closed',
  },
  {
    what: 'counts of keys by user in `/proc/key-users`',
    places: /^\/proc\/key-users /,
    why: 'Every container that starts or ends on the machine makes or drops a session keyring. A script cannot make a key (`add_key`, `request_key` and `keyctl` are refused), so it cannot change the counts',
  },
  {
    what: "the order of the kernel's own sockets in `net/netlink` (`docker`)",
    places: /^(own|broker|zygote)\/net\/netlink \d+ \d+$/,
    why: 'They are in hash tables that the whole machine shares. When anybody opens sockets, the kernel may rebuild the tables in another order. This carries one bit, which everybody overwrites',
  },
  {
    what: 'counters of broker and zygote: `/proc/1` and the zygote in `stat`, `statm`, `status`, `sched`, `schedstat`, `arch_status`, `net/unix`',
    places:
      /^(broker|zygote)\/(stat|statm|status|sched|schedstat|net\/unix|io|smaps|smaps_rollup|maps|timerslack_ns|oom_score|arch_status)\b/,
    why: 'The kernel adds up CPU time, context switches, page faults and peak memory for as long as a process lives. A script that makes the broker work, or touches pages before it ends, increases them by an amount that it chooses, plus the noise of the run: some 20 bits a run',
  },
  {
    what: 'numbers that continue: pids, inodes, places in directories, cookies of sockets',
    places:
      /^(new |entry )|^\/proc\/sys\/kernel\/ns_last_pid|^os\.(getpgid|getpgrp|getsid|getppid)|^getsockopt \d+ \d+ 1 57$|^own\/net\/unix/,
    why: 'Each process, file and socket takes the next number. A script passes on a number by how many it uses: up to 22 bits by pids, and some 20 bits by the files of each of four directories',
  },
  {
    what: 'the times, addresses, memory and context switches of the fresh process itself',
    places:
      /^own\/(arch_status|autogroup|auxv|fdinfo\/|io|maps|numa_maps|oom_score|sched|schedstat|smaps|smaps_rollup|stat|statm|status|syscall|timers|wchan)\b|^getrusage|^getitimer|^os\.(times|getcpu|sched_getcpu)|^getsockopt \d+ \d+ 6 (11|24)$|^prctl 40$/,
    why: 'The process is made for the run and ends with it',
  },
  {
    what: 'times of the writable directories and of `/dev/pts`',
    places:
      /^stat \/(workspace|tmp|var\/tmp|dev\/shm|dev\/pts|dev\/pts\/ptmx) st_(a|c)time_ns$|^stat \/dev\/pts\/ptmx st_mtime_ns$/,
    why: 'They show when the broker wiped the directories. A script influences that by when it ends, as with every clock. In a container the kernel sets the time of `ptmx` when a script uses a terminal, in steps of 8 s',
  },
  {
    what: 'times of the nodes of `/dev` and entries of `/proc`',
    places: /^stat (\/dev|\/dev\/(?!pts|shm)\w+|\/proc) st_([acm]time_ns|nlink)$/,
    why: "The nodes are the host's, and everybody who writes to `/dev/null` sets its times. A script chooses when it writes",
  },
  {
    what: 'free space of the disk that holds the root directory, in `statvfs` (`docker`)',
    places: /^statvfs \/ free$/,
    why: "The root directory of a container is read-only, and on the daemon's disk, whose free space everything on the machine changes. A script cannot write to this disk",
  },
  {
    what: "counters of the container's control group in `/sys/fs/cgroup` (`docker`)",
    places: /^\/sys\/fs\/cgroup\//,
    why: 'The kernel adds up CPU time, page faults, failed forks and peak memory of the container. A script chooses by how much they grow: some 20 bits in each of about ten counters. The engine `local` mounts no control groups; `maxUses: 1` gives each run a container of its own',
  },
]

/** The places whose value differs between two readings and for which no row above gives a reason. */
export function unexplained(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): readonly string[] {
  const places = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return places
    .filter((place) => before[place] !== after[place])
    .filter((place) => !KNOWN_DIFFERENCES.some(({ places: known }) => known.test(place)))
    .map((place) => `${place}: ${before[place] ?? 'nothing'} -> ${after[place] ?? 'nothing'}`)
}
