/**
 * The pieces of a source, until `over` settles. A source that stalls is then abandoned: nothing can make it continue.
 * @throws what the source throws.
 */
export async function* piecesUntil<Piece>(
  source: AsyncIterable<Piece>,
  over: Promise<unknown>,
): AsyncGenerator<Piece, void, void> {
  const iterator = source[Symbol.asyncIterator]()
  let isOver = false
  // One callback on `over` for all pieces: `Promise.race` would add another one for each piece.
  let leave = (): void => undefined
  const end = (): void => {
    isOver = true
    leave()
  }
  over.then(end, end)
  let isDone = false
  try {
    while (!isOver) {
      const next = await new Promise<IteratorResult<Piece> | undefined>((resolve, reject) => {
        leave = (): void => resolve(undefined)
        iterator.next().then(resolve, reject)
      })
      if (next === undefined) return
      isDone = next.done === true
      if (next.done === true) return
      yield next.value
    }
  } catch (error) {
    isDone = true
    throw error
  } finally {
    if (!isDone) leaveSource(source, iterator)
  }
}

/** As `for await` does, but without waiting for a source that does not answer. */
function leaveSource(source: object, iterator: AsyncIterator<unknown>): void {
  // The iterator of a stream waits for the data that does not come.
  if ('destroy' in source && typeof source.destroy === 'function') (source.destroy as () => void).call(source)
  Promise.resolve(iterator.return?.()).catch(() => undefined)
}
