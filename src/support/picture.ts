/** A picture in a MIME bundle. */
export interface Picture {
  readonly type: string
  /** For a file name, without a dot. */
  readonly extension: string
  readonly content: Buffer
}

/** Types of pictures by preference. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
  ['image/svg+xml', 'svg'],
])

/** The picture of a bundle, whose text types are text and whose binary types are base64; undefined if it has none. */
export function pictureIn(data: Readonly<Record<string, string>>): Picture | undefined {
  for (const [type, extension] of EXTENSIONS) {
    const text = Object.hasOwn(data, type) ? data[type] : undefined
    if (text === undefined) continue
    return { type, extension, content: Buffer.from(text, type === 'image/svg+xml' ? 'utf8' : 'base64') }
  }
  return undefined
}
