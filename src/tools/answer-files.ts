import { createHash } from 'node:crypto'
import { pictureIn, truncateAndCount } from '../support/index.ts'

/** A file that a script left, or a picture that it showed. */
export interface LeftFile {
  readonly path: string
  readonly size: number
  readonly sha256: string
  readonly content: Uint8Array
  /** Present if the content holds the value of a secret. */
  readonly holdsSecret?: true
  /** Present for the picture of a display. It is no file of the sandbox, and `path` is its name in the answer. */
  readonly isDisplay?: true
}

/** A file in the answer to the model: its name, not its content. */
export interface FileNote {
  readonly path: string
  readonly size: number
  readonly type: string
}

/** A file whose content goes to the model. */
export type ShownFile = FileNote &
  (
    | { readonly kind: 'text'; readonly text: string }
    /** Base64. */
    | { readonly kind: 'image' | 'binary'; readonly data: string }
  )

/** Distinguishes files that are new to the model from those that it has seen, where files stay. */
export class FileNews {
  /** Digests by path of the files in the last answer that had files. */
  #shown: ReadonlyMap<string, string> = new Map()

  /** Returns the files that are new or changed since the last answer. */
  selectNew(files: readonly LeftFile[]): readonly LeftFile[] {
    return files.filter(({ path, sha256 }) => this.#shown.get(path) !== sha256)
  }

  /** Notes the files that the model has seen. A run without collected files, such as a rejected one, does not change the note. */
  noteShown(files: readonly LeftFile[]): void {
    if (files.length > 0) this.#shown = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  }
}

/** Maximum number of files of one answer whose content goes to the model. */
const MAX_SHOWN = 10
/** Maximum number of files of one answer that it names. */
const MAX_LISTED = 100

/** A value that a script showed. */
export interface ShownValue {
  readonly kind: string
  readonly data: Readonly<Record<string, string>>
}

/** A value that a script showed, in the answer to the model: its text, and the name of its picture, which follows the answer. */
export interface DisplayNote {
  readonly text: string
  readonly picture?: string
}

/** The picture of a display. */
type DisplayPicture = LeftFile & { readonly isDisplay: true }

/** Returns the pictures of displays as files: by the place of the display, undefined for one without a picture that models accept. */
export function picturesOf(displays: readonly ShownValue[]): (DisplayPicture | undefined)[] {
  return displays.map(({ data }, index) => {
    const picture = pictureIn(data)
    if (picture === undefined || !isImage(picture.content, picture.type)) return undefined
    const { content, extension } = picture
    const sha256 = createHash('sha256').update(content).digest('hex')
    return { path: `display-${index + 1}.${extension}`, size: content.length, sha256, content, isDisplay: true }
  })
}

/**
 * Returns a note on each display that the model would not see otherwise.
 * @param pictures as {@link picturesOf} returns them.
 * @param shown the pictures that follow the answer.
 */
export function noteDisplays(
  displays: readonly ShownValue[],
  pictures: readonly (LeftFile | undefined)[],
  shown: readonly ShownFile[],
  { maxBytes, maxChars }: AnswerLimits,
): readonly DisplayNote[] {
  const follows = new Set(shown.map(({ path }) => path))
  return displays.flatMap(({ kind, data }, index): DisplayNote[] => {
    const picture = pictures[index]
    const given = data['text/plain'] ?? data['text/markdown'] ?? Object.keys(data).join(', ')
    const text = truncateAndCount(given, maxChars)
    // The answer already has the text of a cell's value.
    if (picture === undefined) return kind === 'result' ? [] : [{ text }]
    const { path, size } = picture
    if (follows.has(path)) return [{ text, picture: path }]
    const limits = `an answer shows at most ${MAX_SHOWN} pictures and files, of ${maxBytes} bytes together`
    return [{ text: `${text}\n(the picture ${path}, ${size} bytes, is not shown: ${limits})` }]
  })
}

/** The path, size and type of each file. The type follows from the name. */
export async function notesOf(files: readonly LeftFile[]): Promise<FileNote[]> {
  if (files.length === 0) return []
  // Imported only if a script left files: its table takes 10 ms to load.
  const { default: mime } = await import('mime')
  const typeOf = (path: string): string => mime.getType(path) ?? 'application/octet-stream'
  return files.slice(0, MAX_LISTED).map(({ path, size }) => ({ path, size, type: typeOf(path) }))
}

/** The limits of the content that goes to the model with one answer: bytes of all files, and characters of a text, which is cut. */
interface AnswerLimits {
  readonly maxBytes: number
  readonly maxChars: number
}

/**
 * The content that goes to the model: the first files that fit. Never a file with a secret.
 * @param earlier files that count towards the limits, too.
 */
export function fitFiles(
  files: readonly LeftFile[],
  notes: readonly FileNote[],
  { maxBytes, maxChars }: AnswerLimits,
  earlier: readonly ShownFile[] = [],
): ShownFile[] {
  const shown: ShownFile[] = []
  const room = MAX_SHOWN - earlier.length
  let left = maxBytes - earlier.reduce((bytes, { size }) => bytes + size, 0)
  for (const [index, note] of notes.entries()) {
    const file = files[index]
    if (file === undefined || file.holdsSecret === true || shown.length === room || file.size > left) continue
    left -= file.size
    shown.push({ ...note, ...partOf(file.content, note.type, maxChars) })
  }
  return shown
}

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image' | 'binary'; readonly data: string }

function partOf(content: Uint8Array, type: string, maxChars: number): Part {
  const text = isText(type) ? decodeText(content) : undefined
  if (text !== undefined) return { kind: 'text', text: truncateAndCount(text, maxChars) }
  const data = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('base64')
  return { kind: isImage(content, type) ? 'image' : 'binary', data }
}

function isText(type: string): boolean {
  return /^text\/|^application\/(?:.+\+)?(?:json|xml|yaml|sql|javascript|toml)$|^image\/svg\+xml$/.test(type)
}

/** Undefined for bytes that are not UTF-8. */
function decodeText(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    return undefined
  }
}

/** The images that models accept, by their first bytes. A provider rejects the whole conversation if a text file is named `x.png`. */
const IMAGES: ReadonlyMap<string, RegExp> = new Map([
  ['image/png', /^\u0089PNG\r\n/],
  ['image/jpeg', /^\u00FF\u00D8\u00FF/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
])

function isImage(content: Uint8Array, type: string): boolean {
  const head = Buffer.from(content.subarray(0, 16)).toString('latin1')
  return IMAGES.get(type)?.test(head) === true
}
