import type { Sandbox } from '../sandbox/index.ts'

/** The properties of a sandbox's Python that determine which wheels fit. */
export interface PythonTarget {
  /** For example `3.12.4`. */
  readonly python: string
  /** The suffix of extension modules, such as `cpython-312-x86_64-linux-gnu`. */
  readonly abi: string
  /** The C library with its version, such as `glibc 2.41`, `musl` or `pyemscripten 2026.0`; empty if unknown. */
  readonly libc: string
}

/** A platform in uv's format. */
export interface Platform {
  readonly os: {
    readonly name: 'manylinux' | 'musllinux' | 'pyemscripten'
    readonly major: number
    readonly minor: number
  }
  readonly arch: string
}

/** The Python of a sandbox that is ready. Undefined for a harness that does not report it. */
export function targetOf({ info, ready }: Pick<Sandbox, 'info' | 'ready'>): PythonTarget | undefined {
  const { abi, libc } = ready.checks
  if (typeof abi !== 'string' || !ABI.test(abi)) return undefined
  return { python: info.python, abi, libc: typeof libc === 'string' && LIBC.test(libc) ? libc : '' }
}

export function isTarget(value: unknown): value is PythonTarget {
  const { python, abi, libc } = (value ?? {}) as Partial<Record<keyof PythonTarget, unknown>>
  return [python, abi, libc].every((part) => typeof part === 'string')
}

export function isSameTarget(a: PythonTarget, b: PythonTarget): boolean {
  return a.python === b.python && a.abi === b.abi && a.libc === b.libc
}

const ABI = /^cpython-\d{2,4}t?-[a-z0-9_]+-[a-z0-9-]+$/
const LIBC = /^(?:(?:glibc|musl|pyemscripten) \d{1,4}\.\d{1,3}|musl)$/
/** The version of a C library that reports none: the oldest one that wheels are still built for. */
const OLDEST = { glibc: [2, 17], musl: [1, 2] } as const

/** The platform of a target; undefined for one that no wheels are built for. */
export function platformOf({ abi, libc }: PythonTarget): Platform | undefined {
  const [, arch = '', system = ''] = /^cpython-\d+t?-([a-z0-9_]+)-(.+)$/.exec(abi) ?? []
  const [kind = '', version = ''] = libc.split(' ')
  const [major, minor] = version === '' ? [] : version.split('.').map(Number)
  if (system === 'emscripten') {
    if (kind !== 'pyemscripten' || major === undefined || minor === undefined) return undefined
    return { os: { name: 'pyemscripten', major, minor }, arch }
  }
  if (!system.startsWith('linux')) return undefined
  const isMusl = kind === 'musl' || system.endsWith('musl')
  const [oldMajor, oldMinor] = OLDEST[isMusl ? 'musl' : 'glibc']
  return {
    os: { name: isMusl ? 'musllinux' : 'manylinux', major: major ?? oldMajor, minor: minor ?? oldMinor },
    arch,
  }
}

/** Describes a target, for messages. */
export function describeTarget(target: PythonTarget): string {
  const { os, arch } = platformOf(target) ?? { os: undefined, arch: 'an unknown system' }
  const system =
    os === undefined ? '' : os.name === 'pyemscripten' ? 'WebAssembly' : `Linux ${arch} (${target.libc || os.name})`
  return `Python ${target.python} on ${system || arch}`
}

/**
 * The facts that uv queries from an interpreter. A program that prints them stands in for the Python of the sandbox, which
 * may be in a container: no Python of the host is started. The format belongs to uv, whose version is therefore pinned.
 * @param path of that program.
 */
export function interpreterInfo(target: PythonTarget, path: string): string | undefined {
  const platform = platformOf(target)
  if (platform === undefined) return undefined
  const { os, arch } = platform
  const short = target.python.split('.').slice(0, 2).join('.')
  const isWasm = os.name === 'pyemscripten'
  const none = '/nonexistent'
  return JSON.stringify({
    result: 'success',
    markers: {
      implementation_name: 'cpython',
      implementation_version: target.python,
      os_name: 'posix',
      platform_machine: arch,
      platform_python_implementation: 'CPython',
      platform_release: '',
      platform_system: isWasm ? 'Emscripten' : 'Linux',
      platform_version: '',
      python_full_version: target.python,
      python_version: short,
      sys_platform: isWasm ? 'emscripten' : 'linux',
    },
    sys_base_prefix: none,
    sys_base_exec_prefix: none,
    sys_prefix: none,
    sys_base_executable: `${none}/python3`,
    sys_executable: path,
    sys_path: [],
    site_packages: [],
    stdlib: none,
    extension_suffixes: [],
    standalone: false,
    scheme: { platlib: none, purelib: none, include: none, scripts: none, data: none },
    virtualenv: { purelib: 'lib', platlib: 'lib', include: 'include', scripts: 'bin', data: '' },
    os,
    arch,
    cpu_info: { detected: { kind: 'flags', flags: '' } },
    manylinux_compatible: true,
    gil_disabled: /^cpython-\d+t-/.test(target.abi),
    debug_enabled: false,
    pointer_size: /^(?:wasm32|i\d86|armv\d)/.test(arch) ? '32' : '64',
  })
}
