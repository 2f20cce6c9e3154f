import { CAPS } from '../../../src/protocol/index.ts'
import { type EntryPoint, KiB, MiB, NEARLY_SECRET, running, SECRETS } from './entry-point.ts'
import { line } from './peer.ts'

/** A piece of a collected file, as a harness sends it. */
interface Piece {
  readonly path: string
  readonly size: number
  readonly offset: number
  readonly base64: string
}

const BYTE = 'YQ=='
const FILES: readonly { name: string; unit: string; sizes: readonly number[]; pieces: (size: number) => Piece[] }[] = [
  {
    name: 'many empty files',
    unit: 'files',
    sizes: [100, 1000, 100_000],
    pieces: (n) => Array.from({ length: n }, (_, at) => ({ path: `f${at}`, size: 0, offset: 0, base64: '' })),
  },
  {
    name: 'pieces of a byte',
    unit: 'pieces',
    sizes: [10_000, 100_000, 800_000],
    pieces: (n) => piecesOf('f', n, 1, () => BYTE),
  },
  {
    name: 'bytes that nearly hold a secret',
    unit: 'MiB',
    sizes: [4, 16, 64],
    pieces: (n) =>
      Array.from({ length: (n * MiB) / CAPS.fileBytes }, (_, at) =>
        piecesOf(`f${at}`, CAPS.fileBytes, CAPS.fileChunkBytes, (bytes) => base64Of(NEARLY_SECRET, bytes)),
      ).flat(),
  },
  {
    name: 'files full of secrets',
    unit: 'MiB',
    sizes: [4, 16, 64],
    pieces: (n) =>
      Array.from({ length: (n * MiB) / CAPS.fileBytes }, (_, at) =>
        piecesOf(`f${at}`, CAPS.fileBytes, CAPS.fileChunkBytes, (bytes) => base64Of('tops3cret\n', bytes)),
      ).flat(),
  },
  {
    name: 'long names that nearly hold a secret',
    unit: 'characters',
    sizes: [1000, 4000, 16_000],
    pieces: (n) =>
      Array.from({ length: CAPS.files }, (_, at) => ({
        path: `${at}${`/${NEARLY_SECRET.repeat(120)}`.repeat(n / 241)}`,
        size: 1,
        offset: 0,
        base64: BYTE,
      })),
  },
  {
    name: 'a name without an end',
    unit: 'characters',
    sizes: [1000, 100_000, 900_000],
    pieces: (n) => [{ path: 'a/'.repeat(n / 2), size: 1, offset: 0, base64: BYTE }],
  },
  {
    name: 'pieces in reverse order',
    unit: 'pieces',
    sizes: [10, 1000, 100_000],
    pieces: (n) => piecesOf('f', n, 1, () => BYTE).toReversed(),
  },
  {
    name: 'huge sizes',
    unit: 'announced bytes',
    sizes: [CAPS.fileBytes, 1e12, Number.MAX_SAFE_INTEGER],
    pieces: (size) => Array.from({ length: 20 }, (_, at) => ({ path: `f${at}`, size, offset: 0, base64: BYTE })),
  },
  {
    name: 'a piece that is no base64',
    unit: 'characters',
    sizes: [1000, 100_000, 900_000],
    pieces: (n) => [{ path: 'f', size: CAPS.fileBytes, offset: 0, base64: `${'A'.repeat(n)}==!=` }],
  },
]

/** Collected files of a run. */
export const FILE_ENTRY_POINTS: readonly EntryPoint[] = FILES.map(({ pieces, ...rest }) => ({
  ...rest,
  name: `files: ${rest.name}`,
  from: 'a script',
  limitBytes: CAPS.totalBytes,
  prepare: (size) => running(pieces(size).map(lineOf), { collect: ['**'], secrets: SECRETS }),
}))

function lineOf({ path, size, offset, base64 }: Piece): Uint8Array {
  return line('file', `"path":${JSON.stringify(path)},"size":${size},"offset":${offset},"content_base64":"${base64}"`)
}

function piecesOf(path: string, size: number, pieceBytes: number, base64Of: (bytes: number) => string): Piece[] {
  return Array.from({ length: Math.ceil(size / pieceBytes) }, (_, at) => {
    const offset = at * pieceBytes
    return { path, size, offset, base64: base64Of(Math.min(pieceBytes, size - offset)) }
  })
}

function base64Of(text: string, bytes: number): string {
  return Buffer.alloc(bytes, text.repeat(KiB)).toString('base64')
}
