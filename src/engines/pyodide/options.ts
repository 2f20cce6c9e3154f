/** Options of the engine `pyodide`; all have defaults. */
export interface PyodideEngineOptions {
  /**
   * A directory of wheels (`*.whl`) whose modules scripts can import: pure Python, or built for this Pyodide. Nothing is
   * fetched.
   */
  readonly wheels?: string
  /** Where the memory snapshot is kept. Default: /var/cache/sandglass as root, else below XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir?: string
  /**
   * Whether instances run inside of bubblewrap where that works (Linux): the kernel then holds them, too. Default true;
   * where it does not work, and with false, the level is `language-only`.
   */
  readonly bubblewrap?: boolean
  /** How long an instance may take to be ready, in milliseconds. Default 60,000. */
  readonly startTimeoutMs?: number
}
