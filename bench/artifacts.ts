import { execFile } from 'node:child_process'
import { createReadStream, createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createArtifactService, storeInDirectory } from '../src/artifacts/index.ts'
import { measureMs } from './measure.ts'
import { ms, type Row } from './row.ts'

const MiB = 1024 ** 2
const SIZE_MIB = 512
const PIECE_BYTES = MiB
const ROUNDS = 10
const FASTEST = `the fastest of ${ROUNDS} rounds`
const VERSIONS = 1000
/** The minimum speed as a fraction of that of cp. */
const LEAST_SHARE = 0.6
const MAX_LIST_MS = 10
const MAX_GROWTH_MIB = 100

/** Measures artifacts in a directory: saving and loading a large one, compared with `cp` to the same disk, and listing many versions. */
export async function artifacts(): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  try {
    return [...(await transfers(directory)), await listing(directory)]
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function transfers(directory: string): Promise<Row[]> {
  const [source, copy, out] = ['source', 'copy', 'out'].map((name) => join(directory, name)) as [string, string, string]
  await writeSource(source)
  const store = join(directory, 'store')
  const [copies, saves, streamed, loads, files]: [number[], number[], number[], number[], number[]] = [
    [],
    [],
    [],
    [],
    [],
  ]
  let peak = 0
  // The first save starts the thread that hashes large content.
  await createArtifactService(storeInDirectory(store)).save('first', Buffer.alloc(16 * MiB))
  const before = process.memoryUsage.rss()
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20)
  for (let round = 0; round < ROUNDS; round++) {
    remove(copy)
    // A save is on the disk when it is acknowledged, so the copy must be synced as well.
    copies.push(
      await measureMs(async () => promisify(execFile)('sh', ['-c', 'cp "$0" "$1" && sync "$1"', source, copy])),
    )
    remove(store)
    saves.push(
      await measureMs(async () => createArtifactService(storeInDirectory(store)).save('large', { path: source })),
    )
    remove(store)
    const service = createArtifactService(storeInDirectory(store))
    const content = createReadStream(source, { highWaterMark: PIECE_BYTES })
    streamed.push(await measureMs(async () => service.save('large', content)))
    remove(out)
    loads.push(await measureMs(async () => pipeline((await service.open('large')).stream, createWriteStream(out))))
    remove(out)
    files.push(await measureMs(async () => service.saveTo('large', out)))
  }
  clearInterval(watch)
  const growth = (peak - before) / MiB
  return [
    shareRow(`a file of ${SIZE_MIB} MiB saved to new files after a first save, ${FASTEST}`, saves, copies),
    shareRow(`the same from a stream of Node, ${FASTEST}`, streamed, copies),
    shareRow(`an artifact of ${SIZE_MIB} MiB written to a new file, ${FASTEST}`, files, copies),
    shareRow(`the same read as a stream and piped there, ${FASTEST}`, loads, copies),
    {
      what: 'memory of the host meanwhile',
      figure: `${growth.toFixed(0)} MiB more`,
      bound: `<= ${MAX_GROWTH_MIB} MiB`,
      met: growth <= MAX_GROWTH_MIB,
    },
  ]
}

/**
 * The fastest rounds count. On a virtual machine, memory that was free for a while must be fetched from the hypervisor when a file
 * fills it, which adds up to a second to any round.
 */
function shareRow(what: string, takes: readonly number[], copies: readonly number[]): Row {
  const [taken, copying] = [Math.min(...takes), Math.min(...copies)]
  const share = copying / taken
  return {
    what,
    figure: `${ms(taken)} = ${(100 * share).toFixed(0)} % of the speed of cp and sync (${ms(copying)})`,
    bound: `>= ${100 * LEAST_SHARE} %`,
    met: share >= LEAST_SHARE,
  }
}

async function listing(directory: string): Promise<Row> {
  const service = createArtifactService(storeInDirectory(join(directory, 'many')))
  for (let version = 0; version < VERSIONS; version++) await service.save('a.txt', 'the same')
  const taken: number[] = []
  for (let round = 0; round < 50; round++) taken.push(await measureMs(async () => service.versions('a.txt')))
  return {
    what: `${VERSIONS} versions of an artifact listed`,
    figure: ms(median(taken)),
    bound: `<= ${MAX_LIST_MS} ms`,
    met: median(taken) <= MAX_LIST_MS,
  }
}

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true })
}

async function writeSource(path: string): Promise<void> {
  await using file = await open(path, 'w')
  const piece = Buffer.alloc(MiB, 7)
  for (let at = 0; at < SIZE_MIB; at++) {
    piece.writeUInt32LE(at)
    await file.write(piece)
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
