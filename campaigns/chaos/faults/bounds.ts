/* Time bounds, in milliseconds, from the fault tests of the engines. */

/** Time after its deadline in which a call settles. */
export const GRACE_MS = 1000
/** Time that the host adds to a deadline when the harness is silent. */
export const BACKSTOP_MS = 5000
/** Time to destroy a silent sandbox. */
export const DESTROY_MS = 2000
/** Time to report a lost sandbox: FLT-010 (campaigns/adversarial/engines/faults/containers.ts). */
export const LOST_MS = 5000
/** Time to report a lost daemon: FLT-004 (test/daemon/engines/docker/daemon-faults.test.ts). */
export const DAEMON_LOST_MS = 10_000
/** Time until all processes of a killed host are gone: campaigns/adversarial/suites/host-death.ts. */
export const HOST_DEATH_MS = 1000
/** The same for a container of eight sessions with 40 checkpoints. */
export const DOCKER_DEATH_MS = 5000
/** The same for instances of Pyodide: test/sandbox/engines/pyodide/host-death.test.ts. */
export const PYODIDE_DEATH_MS = 5000

/** Deadline of runs that must time out, in seconds. */
export const SHORT_SEC = 4
/** Deadline of runs that must end earlier, in seconds. */
export const LONG_SEC = 20

export const LOST: readonly RegExp[] = [/^sandbox-lost\/infrastructure: [\w -]+ by \w+: ./]
export const TIMED_OUT: readonly RegExp[] = [/^timed-out\/timeout: [\w -]+ by \w+: .*timed out/i]
export const COMPLETED: readonly RegExp[] = [/^completed$/]
export const HOST_GONE: readonly RegExp[] = [/^host gone$/]
