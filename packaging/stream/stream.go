// Package stream reads and edits CoreOS stream metadata, the document that
// says where the images of a stream are, as far as Azure is concerned: it
// takes an image from the meta.json of its build into the document, finds an
// image in it, and says what is wrong with it.
//
// The types are named as the published schema names them. Document is the
// document as written: whatever the types do not know is kept in it.
package stream

// Stream is what a stream document says.
type Stream struct {
	Stream        string          `json:"stream"`
	Metadata      Metadata        `json:"metadata"`
	Architectures map[string]Arch `json:"architectures"`
}

// Metadata is about the document itself.
type Metadata struct {
	LastModified string `json:"last-modified"`
	Generator    string `json:"generator,omitempty"`
}

// Arch is what there is for one architecture, named as RPM names it.
type Arch struct {
	Artifacts            map[string]PlatformArtifacts `json:"artifacts"`
	RHELCoreOSExtensions *Extensions                  `json:"rhel-coreos-extensions,omitempty"`
}

// PlatformArtifacts are the files to download for one platform.
type PlatformArtifacts struct {
	Release string                 `json:"release"`
	Formats map[string]ImageFormat `json:"formats"`
}

// ImageFormat holds the files of one image; those that are absent are nil.
type ImageFormat struct {
	Disk      *Artifact `json:"disk,omitempty"`
	Kernel    *Artifact `json:"kernel,omitempty"`
	Initramfs *Artifact `json:"initramfs,omitempty"`
	Rootfs    *Artifact `json:"rootfs,omitempty"`
}

// Artifact is one file. Signature and UncompressedSha256 may be empty.
type Artifact struct {
	Location           string `json:"location"`
	Signature          string `json:"signature,omitempty"`
	Sha256             string `json:"sha256"`
	UncompressedSha256 string `json:"uncompressed-sha256,omitempty"`
}

// Extensions are what only RHEL CoreOS has.
type Extensions struct {
	AzureDisk   *AzureDisk   `json:"azure-disk,omitempty"`
	Marketplace *Marketplace `json:"marketplace,omitempty"`
}

// AzureDisk is a page blob that a managed image can be made from as it is.
type AzureDisk struct {
	Release string `json:"release"`
	URL     string `json:"url"`
}

// Marketplace holds the marketplaces' images.
type Marketplace struct {
	Azure map[string]AzureMarketplaceImages `json:"azure,omitempty"`
}

// AzureMarketplaceImages are one offer's images, by the generation of the VM.
type AzureMarketplaceImages struct {
	Gen1 *AzureMarketplaceImage `json:"hyperVGen1,omitempty"`
	Gen2 *AzureMarketplaceImage `json:"hyperVGen2,omitempty"`
}

// AzureMarketplaceImage names an image in the Azure marketplace.
type AzureMarketplaceImage struct {
	Publisher string `json:"publisher"`
	Offer     string `json:"offer"`
	SKU       string `json:"sku"`
	Version   string `json:"version"`
}

// URN is the image's name as the az command takes it.
func (i AzureMarketplaceImage) URN() string {
	return i.Publisher + ":" + i.Offer + ":" + i.SKU + ":" + i.Version
}

// Platforms are the platforms of Azure, as artifacts are filed under them.
func Platforms() []string { return []string{"azure", "azurestack"} }

// Formats are the forms a disk for Azure comes in, best for a download first.
func Formats() []string { return []string{"vhd.xz", "vhd.gz", "vhd"} }
