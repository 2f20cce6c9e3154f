import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { programsNamed } from '../../src/support/index.ts'
import { skipFor } from './required.ts'

const run = promisify(execFile)
const TIMEOUT_MS = 60_000
const WINDOW = { width: 1200, height: 1600 } as const

/** The result of loading a page in a browser. */
export interface OpenedPage {
  /** The document after all of its scripts have run. */
  readonly dom: string
  /** A picture of the window, as PNG. */
  readonly picture: Buffer
  readonly window: typeof WINDOW
}

/**
 * Debian's Chromium, or undefined where tests that need it must be skipped; the reason is printed. Where
 * SANDGLASS_TEST_REQUIRE names `chromium`, it throws instead.
 */
export function requireChromium(): string | undefined {
  const [program] = programsNamed('chromium')
  if (program === undefined) skipFor('chromium', 'there is no program chromium on PATH (apt-get install chromium)')
  return program
}

/** Opens a file in a browser with a temporary profile. */
export async function openPage(program: string, file: string): Promise<OpenedPage> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-browser-'))
  const open = async (profile: string, ...flags: string[]): Promise<string> => {
    const common = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(directory, profile)}`]
    const { stdout } = await run(program, [...common, ...flags, pathToFileURL(file).href], {
      timeout: TIMEOUT_MS,
      maxBuffer: 64 * 1024 * 1024,
    })
    return stdout
  }
  try {
    const picture = join(directory, 'page.png')
    const dom = await open('dom', '--dump-dom')
    await open('picture', `--screenshot=${picture}`, `--window-size=${WINDOW.width},${WINDOW.height}`)
    return { dom, picture: readFileSync(picture), window: WINDOW }
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Width and height of a PNG. @throws Error for a file that is not a PNG. */
export function sizeOfPng(bytes: Buffer): { readonly width: number; readonly height: number } {
  if (bytes.subarray(0, 8).toString('hex') !== '89504e470d0a1a0a') throw new Error('the file is not a PNG')
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** The visible text of a document: without its head and without tags. */
export function textOf(dom: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ' }
  return dom
    .slice(Math.max(0, dom.indexOf('<body')))
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(amp|lt|gt|quot|nbsp);/g, (_, name: string) => entities[name] ?? '')
}
