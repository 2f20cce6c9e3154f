import { loadKnownPackages } from './known-packages.ts'
import { parseRequirement, type Requirement } from './requirement.ts'

const MISSING = /^ModuleNotFoundError: No module named '([A-Za-z_][\w.]{0,200})'/
/** A call of pip within a script, as a command or as a list of arguments. */
const PIP_INSTALL = /\b(?:pip3?|uv)\b["']?[\s,]{1,5}["']?install\b/
/** A call that a script would execute: in quotes, in a list of arguments, or as in notebooks. Prose does not match. */
const PIP_COMMAND =
  /(?:^[ \t]{0,40}[!%]|["'](?:[^"'\n]{0,60}(?:&&|;|-m|sudo|uv|\/)\s{0,5})?)pip3?["']?[\s,]{1,40}["']?install\b/m
const COMMENT = /^[ \t]*#.*$/gm
const WAYS: Readonly<Record<Declarer, (name: string) => string>> = {
  program: (name) => `: declare it, with dependencies: ['${name}'] or --with ${name}`,
  script: (name) =>
    `: declare it at the top of the script, # dependencies = ["${name}"] between # /// script and # ///`,
  nobody: () => ', which is not installed',
}
const INSTEAD: Readonly<Record<Declarer, string>> = {
  program: '. Declare them, with dependencies: [...] or --with NAME',
  script: '. Declare them at its top, # dependencies = ["NAME"] between # /// script and # ///',
  nobody: '',
}
const MAX_READ = 1024 * 1024
const IMPORT =
  /^(?:from[ \t]{1,20}([A-Za-z_][\w.]{0,200})[ \t]{1,20}import\b|import[ \t]{1,20}([A-Za-z_][^#\n]{0,1000}))/

/** The party that can declare a package: the program, as options; the script, in its block; nobody. */
export type Declarer = 'program' | 'script' | 'nobody'

/** A hint after a failed import, or after a script that tried to install something. */
export function explainMissingModule(
  error: string,
  script: string,
  declarer: Declarer = 'program',
): string | undefined {
  const module = MISSING.exec(error)?.[1]
  return (module === undefined ? undefined : explainModule(module, declarer)) ?? explainPip(script, declarer)
}

/** Names the package that contains a module, and how to declare it; undefined if none is known. */
export function explainModule(module: string, declarer: Declarer): string | undefined {
  const [first, ...others] = packagesOf(module)
  if (first === undefined) return undefined
  const also = others.length === 0 ? '' : ` (also in ${others.join(', ')})`
  return `${module} is in ${first}${also}${WAYS[declarer](first)}`
}

function explainPip(script: string, declarer: Declarer): string | undefined {
  return PIP_INSTALL.test(script.slice(0, MAX_READ)) ? explainNoPip(declarer) : undefined
}

/** The warning for a script that called pip and continued; undefined if it does not call pip. */
export function warnOfPip(script: string, declarer: Declarer = 'program'): string | undefined {
  return PIP_COMMAND.test(script.slice(0, MAX_READ).replaceAll(COMMENT, '')) ? explainNoPip(declarer) : undefined
}

function explainNoPip(declarer: Declarer): string {
  return `A script cannot install packages: its sandbox has no network${INSTEAD[declarer]}`
}

/**
 * Requirements for the modules that a script imports at the top level of a line, if a well-known package contains them.
 * @param named the packages that are already declared.
 */
export function requirementsOfImports(script: string, named: ReadonlySet<string>): readonly Requirement[] {
  const found = new Map<string, Requirement>()
  for (const module of importedModules(script)) {
    const packages = packagesOf(module)
    const [first] = packages
    if (first !== undefined && !packages.some((name) => named.has(name))) found.set(first, parseRequirement(first))
  }
  return [...found.values()]
}

/** The modules that a script imports, with their dots, in the order of their lines. Each line is read once. */
export function importedModules(script: string): readonly string[] {
  const modules = new Set<string>()
  for (const line of script.slice(0, MAX_READ).split('\n')) {
    const [, from, list] = IMPORT.exec(line.trimStart()) ?? []
    if (from !== undefined) modules.add(from)
    for (const one of list?.split(',') ?? []) {
      const name = /^\s*([A-Za-z_][\w.]*)/.exec(one)?.[1]
      if (name !== undefined) modules.add(name)
    }
  }
  return [...modules]
}

/** The packages of the longest known prefix of a dotted name. */
function packagesOf(module: string): readonly string[] {
  const known = loadKnownPackages()
  const parts = module.split('.')
  for (let length = Math.min(parts.length, 4); length > 0; length -= 1) {
    const packages = known.packagesFor(parts.slice(0, length).join('.'))
    if (packages.length > 0) return packages
  }
  return []
}
