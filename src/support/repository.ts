/** In a directory with all of these, Git obeys the file `config`, which names programs to start. */
const BARE_GIT = ['HEAD', 'objects', 'refs']
/** A file that names another directory for all of these except `HEAD`. */
const COMMON = 'commondir'
/** The directory of a Darcs repository, whose name has no dot. */
const DARCS = '_darcs'

/** True for a directory that Git treats as a bare repository, or Darcs as one of its repositories. */
export function isHiddenRepository(has: (name: string) => boolean): boolean {
  return has(DARCS) || (has('HEAD') && (has(COMMON) || BARE_GIT.every(has)))
}

/**
 * Finds a directory that is a repository without a dot in its name, or becomes one when files are written: tools follow the
 * configuration in it automatically.
 * @param paths the paths of the written files, relative to one root directory.
 * @param isThere returns true if the path exists now.
 * @returns the path of the repository, '' for the root directory; undefined if there is none.
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
    // A directory follows its parent in the map.
    const path = folder.slice(0, -1)
    if (existing.has(folder.slice(0, path.lastIndexOf('/') + 1)) && isThere(path)) existing.add(folder)
    const isNow = (name: string): boolean => existing.has(folder) && isThere(`${folder}${name}`)
    if (isHiddenRepository((name) => names.has(name.toLowerCase()) || isNow(name))) return path
  }
  return undefined
}
