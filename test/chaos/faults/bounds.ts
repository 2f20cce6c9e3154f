/** What the fault tests of the engines and DESIGN hold the product to, in milliseconds. */

/** A call settles within its deadline and this. */
export const GRACE_MS = 1000
/** What the host adds when the harness says nothing any more. */
export const BACKSTOP_MS = 5000
/** How long a sandbox that says nothing may take to be destroyed. */
export const DESTROY_MS = 2000
/** Of a sandbox that ended: FLT-010 (test/adversarial/engines/faults/containers.ts). */
export const LOST_MS = 5000
/** Of a daemon that went away: FLT-004 (test/engines/docker/daemon-faults.test.ts). */
export const DAEMON_LOST_MS = 10_000
/** All processes of a killed host: test/adversarial/suites/host-death.ts. */
export const HOST_DEATH_MS = 1000
/** The same for instances of Pyodide: test/engines/pyodide/host-death.test.ts. */
export const PYODIDE_DEATH_MS = 5000

/** The deadline of runs that are to meet it, in seconds. */
export const SHORT_SEC = 4
/** That of runs that are ended or end by themselves before it. */
export const LONG_SEC = 20

export const LOST: readonly RegExp[] = [/^sandbox-lost\/infrastructure: [\w -]+ by \w+: ./]
export const TIMED_OUT: readonly RegExp[] = [/^timed-out\/timeout: [\w -]+ by \w+: .*timed out/i]
export const COMPLETED: readonly RegExp[] = [/^completed$/]
export const HOST_GONE: readonly RegExp[] = [/^host gone$/]
