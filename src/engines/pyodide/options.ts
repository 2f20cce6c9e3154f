/** Options of the engine `pyodide`; all have defaults. */
export interface PyodideEngineOptions {
  /**
   * A directory of wheels (`*.whl`) whose modules scripts can import: pure Python, or built for this Pyodide. Nothing is
   * downloaded.
   */
  readonly wheels?: string
  /** The directory of the memory snapshot. Default: /var/cache/sandglass as root, else below XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir?: string
  /**
   * If true, instances run inside bubblewrap where it works (Linux), so that the kernel isolates them as well. Default true.
   * Without bubblewrap the level is `language-only`.
   */
  readonly bubblewrap?: boolean
  /** The time in which an instance must be ready, in milliseconds. Default 60,000. */
  readonly startTimeoutMs?: number
  /**
   * The memory in bytes that instances may take together that are made ahead where runs had to wait for theirs, beyond one for each
   * sandbox. Default 536,870,912 (512 MiB), and at most a quarter of the available memory for each; 0: none are made.
   */
  readonly reserveBytes?: number
}
