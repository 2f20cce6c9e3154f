/**
 * Yields the pieces of a source until `over` settles. A source that stalls at that time is abandoned.
 * @throws the error of the source.
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

/** Closes an iterator like `for await`, but without waiting for a source that does not respond. */
function leaveSource(source: object, iterator: AsyncIterator<unknown>): void {
  // Destroyed first, because the iterator of a stream would wait for its next data.
  if ('destroy' in source && typeof source.destroy === 'function') (source.destroy as () => void).call(source)
  Promise.resolve(iterator.return?.()).catch(() => undefined)
}
