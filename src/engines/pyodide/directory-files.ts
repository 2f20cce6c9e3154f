import { open, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SandglassError } from '../../errors/index.ts'
import type { GuestFile } from './guest/wire.ts'

/** Files for a guest: the path of each, and the bytes of all. */
export interface FileBundle {
  readonly files: readonly GuestFile[]
  readonly bytes: Uint8Array
}

/** A file to be sent to a guest. */
export interface BundledFile {
  readonly path: string
  readonly content: Uint8Array
}

/** The limit of all files: each instance holds them in memory. */
const MAX_BUNDLE_BYTES = 512 * 1024 * 1024

/** Concatenates files. */
export function bundle(contents: readonly BundledFile[]): FileBundle {
  let at = 0
  const files = contents.map(({ path, content }) => ({ path, start: at, end: (at += content.length) }))
  return { files, bytes: Buffer.concat(contents.map(({ content }) => content)) }
}

/**
 * Reads all regular files below a directory, for the same paths below `target`.
 * @throws SandglassError `packages_unreadable`, naming the option and the directory.
 */
export async function filesBelow(option: string, directory: string, target: string): Promise<BundledFile[]> {
  const found: BundledFile[] = []
  let total = 0
  const walk = async (from: string, to: string): Promise<void> => {
    for (const name of (await readdir(from)).toSorted()) {
      const path = join(from, name)
      const kind = await stat(path).catch(() => undefined) // a link that leads nowhere
      if (kind?.isDirectory() === true) await walk(path, `${to}/${name}`)
      else if (kind?.isFile() === true) {
        if (from.endsWith('__pycache__') && !(await isUncheckedByteCode(path))) continue
        total += kind.size
        if (total > MAX_BUNDLE_BYTES) throw new Error(`it holds more than ${MAX_BUNDLE_BYTES} bytes`)
        found.push({ path: `${to}/${name}`, content: await readFile(path) })
      }
    }
  }
  try {
    await walk(directory, target)
  } catch (error) {
    throw new SandglassError('packages_unreadable', `${option}: ${directory} cannot be read: ${messageOf(error)}`, {
      cause: error,
    })
  }
  return found
}

/**
 * True for byte code of Pyodide's Python that is valid whatever the time of its source: the files of an instance have times of
 * their own.
 */
async function isUncheckedByteCode(path: string): Promise<boolean> {
  if (!path.endsWith(BYTE_CODE)) return false
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(8), 0, 8, 0)
    return buffer.readUInt32LE(4) === UNCHECKED_HASH
  } finally {
    await file.close()
  }
}

/** Pyodide has one Python, as the engine has one Pyodide. */
const BYTE_CODE = '.cpython-314.pyc'
/** The flags of byte code that is found by a hash, and that no import compares with its source (PEP 552). */
const UNCHECKED_HASH = 1
