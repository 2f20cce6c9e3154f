/** Options of the engine `pyodide`; all have defaults. */
export interface PyodideEngineOptions {
  /**
   * A directory of wheels (`*.whl`) whose modules scripts can import: pure Python, or built for this Pyodide. Nothing is
   * fetched.
   */
  readonly wheels?: string
  /** Where the memory snapshot is kept. Default: /var/cache/sandglass as root, else below XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir?: string
  /** How long an instance may take to be ready, in milliseconds. Default 60,000. */
  readonly startTimeoutMs?: number
}
