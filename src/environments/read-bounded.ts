const FIRST_BYTES = 64 * 1024

/**
 * Reads a body into one growing buffer. A list of its chunks would hold as many objects as the sender chooses,
 * and each could retain the whole buffer of the connection.
 * @throws Error for more than `maxBytes`, naming the source.
 */
export async function readBounded(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  source: string,
): Promise<Uint8Array> {
  let bytes = new Uint8Array(FIRST_BYTES)
  let length = 0
  for await (const chunk of body) {
    const end = length + chunk.length
    if (end > maxBytes) throw new Error(`${source} has more than ${maxBytes} bytes`)
    if (end > bytes.length) bytes = new Uint8Array(bytes.buffer.transfer(Math.max(end, 2 * bytes.length)))
    bytes.set(chunk, length)
    length = end
  }
  return bytes.subarray(0, length)
}
