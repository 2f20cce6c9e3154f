import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, SandglassError } from '../errors/index.ts'
import { isProgram, makeDirectory, programsNamed } from '../support/index.ts'
import { type IndexSettings, withoutCredentials } from './index-settings.ts'
import { digestOf } from './lock-file.ts'
import { readJson, writeJson } from './json-file.ts'
import { readBounded } from './read-bounded.ts'

const run = promisify(execFile)

/** The version that is downloaded. The stand-in interpreter uses its private format. */
export const UV_VERSION = '0.13.9'
/** Versions on PATH that are used: the same minor version has the same format. */
const SUPPORTED = /^uv 0\.13\.\d+/
/** The wheel of each platform on PyPI, pinned by its SHA-256. The one of musl is linked statically and runs on any Linux. */
const WHEELS: Readonly<Record<string, readonly [tags: string, sha256: string]>> = {
  'linux-x64': ['py3-none-musllinux_1_1_x86_64', '2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25'],
  'linux-arm64': [
    'py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64',
    '5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe',
  ],
  'darwin-x64': ['py3-none-macosx_10_12_x86_64', 'c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5'],
  'darwin-arm64': ['py3-none-macosx_11_0_arm64', '66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63'],
}
const MAX_WHEEL_BYTES = 64 * 1024 * 1024
const MAX_PAGE_BYTES = 32 * 1024 * 1024
const DOWNLOAD_TIMEOUT_MS = 120_000

/** The settings that determine which uv is used. */
interface UvSettings {
  readonly uv?: string | undefined
  readonly cacheDir: string
  readonly offline: boolean
  readonly index: IndexSettings
}

/**
 * Finds uv: the program that the option names, one on PATH whose version fits, or a private copy, which is downloaded once.
 * @param onDownload is called when a download begins.
 * @throws SandglassError `installer_missing`, `index_unreachable`.
 */
export async function findUv(settings: UvSettings, signal?: AbortSignal, onDownload?: () => void): Promise<string> {
  if (settings.uv !== undefined) {
    const found = isProgram(settings.uv) ? [settings.uv] : programsNamed(settings.uv)
    if (found[0] !== undefined) return found[0]
    throw makeMissingError(`environments.uv: ${settings.uv} is not an executable program`)
  }
  const own = join(settings.cacheDir, 'bin', `uv-${UV_VERSION}`)
  if (existsSync(own)) return own
  for (const program of programsNamed('uv')) {
    if (SUPPORTED.test(await versionOf(program, settings.cacheDir))) return program
  }
  if (!settings.offline) onDownload?.()
  return download(own, settings, signal)
}

/** The version that a program reported, as the cache stores it. */
interface KnownVersion {
  readonly identity: string
  readonly version: string
}

/** The version of a uv on PATH. That of a binary is cached, because its start would be a tenth of a short installation. */
async function versionOf(program: string, cacheDir: string): Promise<string> {
  const identity = await identityOf(program)
  if (identity === undefined) return queryVersion(program)
  const path = join(cacheDir, 'bin', `uv-${digestOf(program, 16)}.json`)
  const known = await readJson<Partial<KnownVersion> | null>(path)
  if (known?.identity === identity && typeof known.version === 'string') return known.version
  const version = await queryVersion(program)
  const found: KnownVersion = { identity, version }
  if (version !== '') await writeJson(path, found, join(cacheDir, 'work')).catch(() => {}) // then it is queried again
  return version
}

/** Identifies the state of a binary; undefined for a script, which may start another program the next time. */
async function identityOf(program: string): Promise<string | undefined> {
  try {
    await using file = await open(program)
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const { dev, ino, size, mtimeMs, ctimeMs } = await file.stat()
    return buffer.toString('latin1') === '\x7fELF' ? [dev, ino, size, mtimeMs, ctimeMs].join(' ') : undefined
  } catch {
    return undefined
  }
}

async function queryVersion(program: string): Promise<string> {
  return run(program, ['--version'], { timeout: 10_000, cwd: '/' }).then(
    ({ stdout }) => stdout,
    () => '',
  )
}

async function download(own: string, { index, offline }: UvSettings, signal: AbortSignal | undefined): Promise<string> {
  const wheel = WHEELS[`${process.platform}-${process.arch}`]
  if (wheel === undefined)
    throw makeMissingError(
      `there is no uv to download for ${process.platform} on ${process.arch}; name one with environments.uv`,
    )
  if (offline)
    throw makeMissingError(
      'environments.offline is set, and the cache has no uv; install uv, or run once without that option',
    )
  const program = await fetchProgram(index, wheel, signal)
  const temporary = `${own}.${randomUUID()}`
  makeDirectory(join(own, '..'), { own: 0o755, above: 0o755 })
  try {
    await writeFile(temporary, program)
    await chmod(temporary, 0o755)
    await rename(temporary, own)
  } finally {
    await rm(temporary, { force: true })
  }
  return own
}

async function fetchProgram(
  index: IndexSettings,
  [tags, sha256]: readonly [tags: string, sha256: string],
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const name = `uv-${UV_VERSION}-${tags}.whl`
  try {
    const bytes = await fetchBounded(await findWheel(index, name, signal), MAX_WHEEL_BYTES, signal)
    if (createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw new Error(`${name} does not have the pinned SHA-256`)
    return await extract(bytes, `uv-${UV_VERSION}.data/scripts/uv`)
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason
    throw new SandglassError(
      'index_unreachable',
      `uv ${UV_VERSION}, which installs packages, cannot be downloaded from ${withoutCredentials(index.base)}: ${reasonOf(error)}. ` +
        'Install it yourself (pip install uv), or name it with environments.uv',
      { cause: error },
    )
  }
}

/** The address of a file in the index, from its page of the package (PEP 691, else PEP 503). */
async function findWheel({ base }: IndexSettings, name: string, signal: AbortSignal | undefined): Promise<string> {
  const page = new URL('uv/', base.endsWith('/') ? base : `${base}/`)
  const text = Buffer.from(await fetchBounded(page.href, MAX_PAGE_BYTES, signal)).toString('utf8')
  const at = text.indexOf(`/${name}`)
  if (at === -1) throw new Error(`the index has no ${name}`)
  const start = Math.max(text.lastIndexOf('"', at), text.lastIndexOf("'", at)) + 1
  return new URL(text.slice(start, at + 1 + name.length), page).href
}

async function fetchBounded(address: string, maxBytes: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const url = new URL(address)
  const { username, password } = url
  url.username = ''
  url.password = ''
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  const limit = AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)
  const response = await fetch(url, {
    headers: {
      accept: 'application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1',
      ...(username === '' ? {} : { authorization: `Basic ${login}` }),
    },
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
  })
  if (!response.ok || response.body === null)
    throw new Error(`${withoutCredentials(address)} answered ${response.status}`)
  return readBounded(response.body, maxBytes, withoutCredentials(address))
}

/** One file of an archive, unpacked in a thread. */
async function extract(archive: Uint8Array, name: string): Promise<Uint8Array> {
  const { unzip } = await import('fflate')
  return new Promise((resolve, reject) => {
    unzip(archive, { filter: (file) => file.name === name }, (error, files) => {
      const found = files?.[name]
      if (found === undefined) reject(error ?? new Error(`the archive has no ${name}`))
      else resolve(found)
    })
  })
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : ''
  return `${messageOf(error)}${cause}`
}

function makeMissingError(reason: string): SandglassError {
  return new SandglassError('installer_missing', `packages are installed by uv, and it was not found: ${reason}`)
}
