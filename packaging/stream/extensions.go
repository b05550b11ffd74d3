package stream

import "github.com/nm-azure-dispatch/nm-azure-dispatch/packaging/stream/internal/jsontree"

// The names of a marketplace image's two generations.
const (
	gen1 = "hyperVGen1"
	gen2 = "hyperVGen2"
)

func (c *decoder) extensions(root *jsontree.Node, at []string) *Extensions {
	e := &Extensions{}
	disk := join(at, "azure-disk")
	if c.object(root, false, disk...) != nil {
		e.AzureDisk = &AzureDisk{
			Release: c.text(root, nonEmpty(), join(disk, "release")...),
			URL:     c.text(root, httpsURL(), join(disk, "url")...),
		}
	}
	azure := join(at, "marketplace", "azure")
	if c.object(root, false, azure[:len(azure)-1]...) == nil || c.object(root, false, azure...) == nil {
		return e
	}
	e.Marketplace = &Marketplace{Azure: map[string]AzureMarketplaceImages{}}
	for plan := range root.Get(azure...).All() {
		in := join(azure, plan)
		if c.object(root, true, in...) == nil {
			continue
		}
		e.Marketplace.Azure[plan] = AzureMarketplaceImages{
			Gen1: c.marketplaceImage(root, join(in, gen1)),
			Gen2: c.marketplaceImage(root, join(in, gen2)),
		}
	}
	return e
}

func (c *decoder) marketplaceImage(root *jsontree.Node, at []string) *AzureMarketplaceImage {
	if c.object(root, false, at...) == nil {
		return nil
	}
	return &AzureMarketplaceImage{
		Publisher: c.text(root, urnPart(), join(at, "publisher")...),
		Offer:     c.text(root, urnPart(), join(at, "offer")...),
		SKU:       c.text(root, urnPart(), join(at, "sku")...),
		Version:   c.text(root, urnPart(), join(at, "version")...),
	}
}
