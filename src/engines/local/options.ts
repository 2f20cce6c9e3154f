/** How the local engine finds what it needs. Everything has a default. */
export interface LocalEngineOptions {
  /**
   * Where locks, records and staged files live. Default: `$SANDGLASS_STATE_DIR`, else `/var/lib/sandglass` as root and
   * `$XDG_STATE_HOME/sandglass` (`~/.local/state/sandglass`) as an ordinary user.
   */
  readonly stateDir?: string
  /** The Python to run scripts with, at least 3.10. Default: the first one on `PATH` that the sandbox can reach. */
  readonly python?: string
  /** The bubblewrap program. Default: `bwrap` on `PATH`. */
  readonly bwrap?: string
  /** How long a sandbox may take to start, in milliseconds. Default 20,000. */
  readonly startTimeoutMs?: number
}
