/** Options of the local engine; all have defaults. */
export interface LocalEngineOptions {
  /**
   * The directory of locks, records and staged files. Default: `$SANDGLASS_STATE_DIR`, else `/var/lib/sandglass` as root and
   * `$XDG_STATE_HOME/sandglass` (`~/.local/state/sandglass`) as an ordinary user.
   */
  readonly stateDir?: string
  /** The Python that runs scripts, at least 3.10. Default: the first one on `PATH` that the sandbox can reach. */
  readonly python?: string
  /** The bubblewrap program. Default: `bwrap` on `PATH`. */
  readonly bwrap?: string
  /** The time that a sandbox may take to start, in milliseconds. Default 20,000. */
  readonly startTimeoutMs?: number
}
