export { storeInDirectory, storeInMemory, storeInS3 } from '../stores/index.ts'
export type { S3StoreOptions, Store, StoreContent, StoredBlob, StoreRecord, TransferOptions } from '../stores/index.ts'
export { type ArtifactServiceOptions, createArtifactService } from './artifacts.ts'
export {
  artifactServiceFromContext,
  loadArtifactHelper,
  saveArtifactHelper,
  withArtifactService,
  withArtifactSession,
} from './context.ts'
export { type ArtifactRef, checkArtifactName, isUserArtifact, parseArtifactRef } from './names.ts'
export type {
  ArtifactInfo,
  ArtifactOptions,
  ArtifactService,
  ArtifactSession,
  DeleteArtifactOptions,
  LoadArtifactOptions,
  LoadedArtifact,
  OpenedArtifact,
  SaveArtifactOptions,
  SaveToOptions,
} from './service.ts'
