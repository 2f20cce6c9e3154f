import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import type { BundledFile } from './directory-files.ts'

const END_OF_DIRECTORY = 0x06054b50
const ENTRY = 0x02014b50
const MAX_FILE_BYTES = 256 * 1024 * 1024

/**
 * Unpacks all wheels of a directory.
 * @throws SandglassError `packages_unreadable`, naming the damaged wheel; `sandbox_setup_failed` if the host is short of a
 * resource.
 */
export async function unpackWheels(directory: string, target: string): Promise<readonly BundledFile[]> {
  let at = directory
  try {
    const files: BundledFile[] = []
    for (const name of (await readdir(directory)).toSorted()) {
      if (!name.endsWith('.whl')) continue
      at = join(directory, name)
      for (const { path, content } of entriesOf(await readFile(at))) files.push({ path: `${target}/${path}`, content })
    }
    return files
  } catch (error) {
    const what = `pyodide.wheels: ${at} cannot be read`
    throw (
      shortageError(error, what) ??
      new SandglassError('packages_unreadable', `${what}: ${messageOf(error)}`, { cause: error })
    )
  }
}

/** Yields the files of a zip archive, from the directory at its end. */
function* entriesOf(zip: Buffer): Generator<BundledFile> {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end === -1 || zip.readUInt32LE(end) !== END_OF_DIRECTORY) throw new Error('it is not a zip archive')
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    if (zip.readUInt32LE(at) !== ENTRY) throw new Error('its directory is damaged')
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ]
    const path = zip.toString('utf8', at + 46, at + 46 + nameLength)
    if (!path.endsWith('/')) {
      if (path.split('/').some((part) => ['', '.', '..'].includes(part))) throw new Error(`it holds the path ${path}`)
      yield { path, content: contentOf(zip, at) }
    }
    at += 46 + nameLength + extraLength + commentLength
  }
}

function contentOf(zip: Buffer, entry: number): Uint8Array {
  const method = zip.readUInt16LE(entry + 10)
  const size = zip.readUInt32LE(entry + 20)
  const local = zip.readUInt32LE(entry + 42)
  // The local header has lengths of its own.
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
  const packed = zip.subarray(start, start + size)
  if (method === 0) return packed
  if (method === 8) return inflateRawSync(packed, { maxOutputLength: MAX_FILE_BYTES })
  throw new Error(`its compression method is unknown (${method})`)
}
