/** In a directory with all of these, Git obeys the file `config`, which names programs to start. */
const BARE_GIT = ['HEAD', 'objects', 'refs']
/** Names another directory for all of these but `HEAD`. */
const COMMON = 'commondir'
/** The directory of a Darcs repository, whose name has no dot. */
const DARCS = '_darcs'

/** True for a directory that Git takes for a bare repository, or Darcs for one of its own. */
export function isHiddenRepository(has: (name: string) => boolean): boolean {
  return has(DARCS) || (has('HEAD') && (has(COMMON) || BARE_GIT.every(has)))
}

/**
 * Finds a directory in which files are to be written and that is, or would become, a repository without a dot in its name: tools
 * obey the files there unasked.
 * @param paths of the files that will be there, relative to one directory.
 * @param isThere whether the directory has an entry now, by its path.
 * @returns the path of the directory, '' for the one that holds all; undefined if there is none.
 */
export function repositoryMadeOf(paths: readonly string[], isThere: (path: string) => boolean): string | undefined {
  const entries = new Map<string, Set<string>>()
  for (const path of paths) {
    for (let start = 0; start !== -1;) {
      const end = path.indexOf('/', start)
      const folder = path.slice(0, start)
      const names = entries.get(folder) ?? new Set<string>()
      // A file system may ignore case.
      entries.set(folder, names.add(path.slice(start, end === -1 ? undefined : end).toLowerCase()))
      start = end === -1 ? -1 : end + 1
    }
  }
  const existing = new Set([''])
  for (const [folder, names] of entries) {
    // A directory stands behind the one that holds it.
    const path = folder.slice(0, -1)
    if (existing.has(folder.slice(0, path.lastIndexOf('/') + 1)) && isThere(path)) existing.add(folder)
    const isNow = (name: string): boolean => existing.has(folder) && isThere(`${folder}${name}`)
    if (isHiddenRepository((name) => names.has(name.toLowerCase()) || isNow(name))) return path
  }
  return undefined
}
