/** Directories of wheels that hold no modules for users. */
const NO_MODULES =
  /^(?:tests?|testing|docs?|examples?|benchmarks?|scripts?|tools?|bin|share|etc|src|build|dist|node_modules|licenses?|samples?|demos?|conf|config|resources|data|static|templates)$/i
const NAME = /^[A-Za-z_]\w*$/

/**
 * The modules of a wheel, by the names of its files: a top-level module, or for a namespace, which has no
 * `__init__.py`, the packages below it with their dots.
 */
export function modulesOf(names: readonly string[]): readonly string[] {
  const directories = new Set<string>()
  const modules = new Set<string>()
  for (const name of names) {
    const parts = name.replace(/^[^/]+\.data\/(?:purelib|platlib)\//, '').split('/')
    const file = parts.pop() ?? ''
    if (parts[0]?.includes('.') === true || parts.some((part) => !NAME.test(part))) continue
    const stem = /^(\w+)(?:\.[\w-]+)*\.(?:py|so|pyd)$/.exec(file)?.[1]
    if (stem === undefined) continue
    if (parts.length === 0) {
      if (!stem.startsWith('_')) modules.add(stem)
    } else if (stem === '__init__') directories.add(parts.join('/'))
    else directories.add(`${parts.join('/')}/`)
  }
  for (const found of directories) {
    const parts = found.replace(/\/$/, '').split('/')
    const top = parts.findIndex((_, at) => directories.has(parts.slice(0, at + 1).join('/')))
    // Without any `__init__.py` the outermost directory with modules counts.
    const depth = top === -1 ? parts.length : top + 1
    if (depth <= 3) modules.add(parts.slice(0, depth).join('.'))
  }
  const outermost = [...modules].filter((one) => ![...modules].some((other) => one.startsWith(`${other}.`)))
  return outermost.filter((one) => !NO_MODULES.test(one) && !one.startsWith('_')).toSorted()
}
