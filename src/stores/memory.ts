import { Buffer } from 'node:buffer'
import { intakeOf, verifyContent } from './content.ts'
import { checkArea, checkDigest, checkRecord, segmentsOf, type Store } from './store.ts'

interface Area {
  readonly blobs: Map<string, { readonly content: Uint8Array; readonly since: number }>
  readonly records: Map<string, { readonly text: string; readonly tag: number }>
}

const NAME = 'the store in memory'
const PIECE_BYTES = 1024 * 1024

/** Keeps everything in the memory of this process: for tests, and for results that need not be kept. */
export function storeInMemory(): Store {
  const areas = new Map<string, Area>()
  const areaOf = (name: string): Area => {
    const known = areas.get(checkArea(name)) ?? { blobs: new Map(), records: new Map() }
    areas.set(name, known)
    return known
  }
  return {
    name: NAME,
    async put(area, content, options) {
      const { blobs } = areaOf(area)
      const { pieces, blob, close } = intakeOf(content, options)
      const parts: Uint8Array[] = []
      try {
        // Copied, because the memory of a piece is reused.
        for await (const piece of pieces) parts.push(Uint8Array.from(piece))
      } finally {
        close()
      }
      const stored = blob()
      blobs.set(stored.sha256, { content: Buffer.concat(parts), since: performance.now() })
      return stored
    },
    async open(area, sha256, options) {
      const found = areaOf(area).blobs.get(checkDigest(sha256))
      if (found === undefined) return undefined
      return verifyContent(sha256, NAME, copyPieces(found.content), options)
    },
    has: async (area, sha256) => areaOf(area).blobs.has(checkDigest(sha256)),
    async *blobs(area) {
      for (const [sha256, { content, since }] of areaOf(area).blobs) {
        yield { sha256, size: content.byteLength, ageMs: performance.now() - since }
      }
    },
    async remove(area, sha256, ageMs) {
      const { blobs } = areaOf(area)
      const found = blobs.get(checkDigest(sha256))
      return found !== undefined && performance.now() - found.since > ageMs && blobs.delete(sha256)
    },
    async read(area, key) {
      const found = areaOf(area).records.get(segmentsOf(key).join('/'))
      return found === undefined ? undefined : { key, text: found.text, tag: String(found.tag) }
    },
    async write(area, key, text, expected) {
      const { records } = areaOf(area)
      const present = records.get(segmentsOf(key).join('/'))?.tag
      if ((present === undefined ? undefined : String(present)) !== expected) return undefined
      const tag = (present ?? 0) + 1
      records.set(key, { text: checkRecord(text), tag })
      return String(tag)
    },
    async *records(area, prefix) {
      const start = prefix === undefined ? '' : `${segmentsOf(prefix).join('/')}/`
      for (const [key, { text, tag }] of areaOf(area).records) {
        if (key.startsWith(start)) yield { key, text, tag: String(tag) }
      }
    },
    close: async () => {},
  }
}

/** Yields copies, so that a reader cannot change the bytes of the store. */
async function* copyPieces(content: Uint8Array): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  for (let at = 0; at < content.byteLength; at += PIECE_BYTES)
    yield Uint8Array.from(content.subarray(at, at + PIECE_BYTES))
}
