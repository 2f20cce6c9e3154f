import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SandglassError } from '../errors/index.ts'
import type { Sandbox, SandboxInfo } from './contract.ts'

/** A package in a directory that pip filled. */
export interface InstalledPackage {
  readonly name: string
  readonly version: string
  /** Its compatibility tags, such as `cp311-cp311-manylinux_2_28_x86_64`; empty if it states none. */
  readonly tags: readonly string[]
}

const DIST_INFO = /^([A-Za-z0-9][\w.]*)-([\w.!+]+)\.dist-info$/
const MAX_PACKAGES = 2000
/** Tags after this length are ignored. */
const MAX_WHEEL_CHARS = 64 * 1024

/**
 * Lists the packages of a directory, sorted by name. The list is empty if the directory cannot be read: the engine reports the
 * reason.
 */
export async function installedPackages(directory: string): Promise<readonly InstalledPackage[]> {
  const names = await readdir(directory).catch((): string[] => [])
  const found = names.toSorted().flatMap((entry) => DIST_INFO.exec(entry) ?? [])
  const packages: InstalledPackage[] = []
  for (let at = 0; at < found.length && packages.length < MAX_PACKAGES; at += 3) {
    const [entry = '', name = '', version = ''] = found.slice(at, at + 3)
    const wheel = await readFile(join(directory, entry, 'WHEEL'), 'utf8').catch(() => '')
    const tags = [...wheel.slice(0, MAX_WHEEL_CHARS).matchAll(/^Tag: (\S+)\s*$/gm)].map(([, tag = '']) => tag)
    packages.push({ name, version, tags })
  }
  return packages
}

/**
 * Throws if packages were built for another Python, operating system or CPU architecture. Importing them would fail in every
 * script.
 * @throws SandglassError `packages_do_not_fit`, with the command that installs the right ones.
 */
export function assertPackagesFit(
  directory: string,
  packages: readonly InstalledPackage[],
  {
    info: { engine, python },
    ready,
  }: { readonly info: Pick<SandboxInfo, 'engine' | 'python'> } & Pick<Sandbox, 'ready'>,
): void {
  const architecture = architectureIn(String(ready.checks['abi'] ?? ''))
  const wrong = packages.filter(({ tags }) => tags.length > 0 && !tags.some((tag) => fits(tag, python, architecture)))
  const [first] = wrong
  if (first === undefined) return
  const version = python.split('.').slice(0, 2).join('.')
  const names = wrong.slice(0, MAX_NAMED).map(({ name }) => name)
  const isForeignBuild = first.tags.some((tag) => (architectureIn(tag) ?? architecture) !== architecture)
  // pip installs for its own architecture unless another one is given.
  const platform = isForeignBuild && architecture !== undefined ? `--platform manylinux2014_${architecture} ` : ''
  throw new SandglassError(
    'packages_do_not_fit',
    `packages: ${first.name} ${first.version} in ${directory} was built for ${first.tags.join(', ')}, and sandboxes of the ` +
      `engine ${engine} have Python ${version} on Linux${architecture === undefined ? '' : ` (${architecture})`}. ` +
      `Install into another directory: python3 -m pip install ` +
      `--target ${directory}-${version} --python-version ${version} ${platform}--only-binary=:all: ${names.join(' ')}`,
  )
}

/** True if this Python accepts a package with this tag (packaging.python.org: platform compatibility tags). */
function fits(tag: string, python: string, architecture: string | undefined): boolean {
  const [interpreters = [], abis = [], platforms = []] = tag.split('-').map((part) => part.split('.'))
  const [major, minor] = python.split('.').map(Number) as [number, number]
  const isForeign = (platform: string): boolean => {
    const built = architectureIn(platform)
    return (
      FOREIGN_SYSTEM.test(platform) || (built !== undefined && architecture !== undefined && built !== architecture)
    )
  }
  if (platforms.every(isForeign)) return false
  return interpreters.some((interpreter) => {
    const built = INTERPRETER.exec(interpreter)
    if (built === null || Number(built[2]) !== major) return false
    const since = Number(built[3])
    if (built[1] === 'py' || abis.includes('abi3')) return since <= minor
    return since === minor && (abis.includes(`cp${major}${minor}`) || abis.includes('none'))
  })
}

/** The CPU architecture in a tag or an ABI, if its name is the same in both. */
function architectureIn(text: string): string | undefined {
  return /(?:^|[_-])(x86_64|aarch64|riscv64|s390x)(?:$|-)/.exec(text)?.[1]
}

const FOREIGN_SYSTEM = /^(?:macosx|win|ios|android)/
const INTERPRETER = /^(py|cp)(\d)(\d*)$/
/** Names of packages in one message. */
const MAX_NAMED = 20
