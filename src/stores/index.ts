export { storeInDirectory } from './directory.ts'
export { storeInMemory } from './memory.ts'
export type { Store, StoreContent, StoredBlob, StoreRecord, TransferOptions } from './store.ts'
