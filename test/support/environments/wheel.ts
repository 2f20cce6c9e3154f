import { createHash } from 'node:crypto'
import { crc32, deflateRawSync } from 'node:zlib'
import { strToU8, Zip, type ZipInputFile } from 'fflate'

/** A wheel for tests. */
export interface Wheel {
  readonly filename: string
  readonly name: string
  readonly content: Uint8Array
  readonly sha256: string
  readonly metadata: string
}

/** The parts of a wheel that a test sets. */
export interface WheelPlan {
  readonly name: string
  readonly version?: string
  /** Content by path within the wheel. Default: a package of that name with `VERSION`. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Its requirements. */
  readonly requires?: readonly string[]
  /** Mode by path within the wheel. */
  readonly modes?: Readonly<Record<string, number>>
  /** In place of the true list of files. */
  readonly record?: string
  /** Default `py3-none-any`. */
  readonly tag?: string
}

/** Builds a wheel in memory. */
export function makeWheel(plan: WheelPlan): Wheel {
  const { name, version = '1.0', files, requires = [], modes = {}, tag = 'py3-none-any' } = plan
  const plain = name.replaceAll('-', '_')
  const info = `${plain}-${version}.dist-info`
  const metadata = [
    'Metadata-Version: 2.1',
    `Name: ${name}`,
    `Version: ${version}`,
    ...requires.map((one) => `Requires-Dist: ${one}`),
    '',
  ].join('\n')
  const content: Record<string, string | Uint8Array> = {
    ...(files ?? { [`${plain}/__init__.py`]: `VERSION = ${JSON.stringify(version)}\n` }),
    [`${info}/METADATA`]: metadata,
    [`${info}/WHEEL`]: `Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: ${tag}\n`,
  }
  const bytes = Object.fromEntries(
    Object.entries(content).map(([path, one]) => [path, typeof one === 'string' ? strToU8(one) : one]),
  )
  const record = Object.entries(bytes).map(
    ([path, one]) => `${path},sha256=${createHash('sha256').update(one).digest('base64url')},${one.length}`,
  )
  bytes[`${info}/RECORD`] = strToU8(plan.record ?? [...record, `${info}/RECORD,,`, ''].join('\n'))
  const entries = Object.entries(bytes).map(([path, one]) => [path, pack(one, modes[path])] as const)
  const zipped = zipOf(entries)
  return {
    filename: `${plain}-${version}-${tag}.whl`,
    name,
    content: zipped,
    metadata,
    sha256: createHash('sha256').update(zipped).digest('hex'),
  }
}

/** Builds a wheel that unpacks to many files of zeros, hundreds of times its size. */
export function makeBomb(name: string, { files, bytes }: { readonly files: number; readonly bytes: number }): Wheel {
  const plain = makeWheel({ name })
  const zeros = pack(new Uint8Array(bytes))
  const info = `${name}-1.0.dist-info`
  const content = zipOf([
    ...Array.from({ length: files }, (_, at) => [`${name}/${at}`, zeros] as const),
    [`${info}/METADATA`, pack(strToU8(plain.metadata))],
    [`${info}/WHEEL`, pack(strToU8('Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'))],
    [`${info}/RECORD`, pack(strToU8(`${info}/RECORD,,\n`))],
  ])
  return { ...plain, content, sha256: createHash('sha256').update(content).digest('hex') }
}

/** A file of a zip archive before it has its name. */
interface PackedFile extends Pick<ZipInputFile, 'size' | 'crc' | 'compression' | 'os' | 'attrs'> {
  readonly packed: Uint8Array<ArrayBuffer>
}

/** Zeros beyond this are compressed four times as fast, to 1/230 of their size and not to 1/1000. */
const LARGE = 1024 * 1024

/** Compresses a file by Node, in a third of the time that the package fflate takes for hundreds of megabytes. */
function pack(content: Uint8Array, mode?: number): PackedFile {
  const unix = mode === undefined ? {} : { os: 3, attrs: mode << 16 }
  return {
    size: content.length,
    crc: crc32(content),
    compression: 8,
    packed: new Uint8Array(deflateRawSync(content, { level: content.length > LARGE ? 1 : 6 })),
    ...unix,
  }
}

function zipOf(files: readonly (readonly [name: string, file: PackedFile])[]): Buffer {
  const chunks: Buffer[] = []
  const zip = new Zip((_error, chunk) => chunks.push(Buffer.from(chunk)))
  for (const [filename, { packed, ...rest }] of files) {
    const file: ZipInputFile = { filename, ...rest }
    zip.add(file)
    file.ondata?.(null, packed, true)
  }
  zip.end()
  return Buffer.concat(chunks)
}
