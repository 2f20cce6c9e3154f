/** Reads the names of the files in a zip archive from its end: the whole archive is not downloaded. */
export async function namesInArchive(address: string): Promise<readonly string[]> {
  let tail = await fetchTail(address, 64 * 1024)
  let end = findEnd(tail)
  const size = tail.readUInt32LE(end + 12)
  const needed = size + (tail.length - end)
  if (needed > tail.length) {
    if (needed > MAX_BYTES) throw new Error('its list of files is too long')
    tail = await fetchTail(address, needed)
    end = findEnd(tail)
  }
  return namesIn(tail.subarray(end - size, end))
}

const END = Buffer.from([0x50, 0x4b, 0x05, 0x06])
const ENTRY = 0x02014b50
const MAX_BYTES = 8 * 1024 * 1024

function findEnd(tail: Buffer): number {
  const at = tail.lastIndexOf(END)
  if (at === -1) throw new Error('it is not a zip archive')
  return at
}

function namesIn(directory: Buffer): string[] {
  const names: string[] = []
  for (let at = 0; at + 46 <= directory.length && directory.readUInt32LE(at) === ENTRY;) {
    const length = directory.readUInt16LE(at + 28)
    names.push(directory.toString('utf8', at + 46, at + 46 + length))
    at += 46 + length + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
  return names
}

async function fetchTail(address: string, bytes: number): Promise<Buffer> {
  const response = await fetch(address, { headers: { range: `bytes=-${bytes}` } })
  if (response.status !== 206 && response.status !== 200) throw new Error(`${address} answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}
