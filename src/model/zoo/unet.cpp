// unet (Ronneberger, Fischer and Brox 2015): an encoder that halves the image `layers` times and
// doubles the channels, and a decoder that reverses it. At every size there is a skip connection
// from one to the other. The mean over the last feature map is a classifier's input. The skips span
// the net: nowhere between the first and the last block does a single value cross.
#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"

namespace thimble {
namespace {

struct Unet {
  int64_t layers = 3;
  int64_t hidden = 16;
};

bool matches(std::string_view name) { return name == "unet"; }

void fields(ModelOptions& options, Fields& list) {
  Unet& unet = own_of<Unet>(options);
  list_layers(unet.layers, list, 10, "how often the image is halved");
  list_hidden(unet.hidden, list, "channels of the first stage");
  list_dropout(options, list);
  list_norm(options, list);
}

// Two convolutions, each normalised and followed by relu.
ValueId block(Layers& net, std::string_view name, ValueId x, int64_t out) {
  const Builder::Scope scope(net.build(), name);
  x = net.norm("bn1", net.conv("conv1", x, out, 3), "relu");
  x = net.norm("bn2", net.conv("conv2", x, out, 3), "relu");
  return net.dropout(x);
}

Model build(const ModelOptions& options) {
  const Unet unet = own_of<Unet>(options);
  const int64_t multiple = int64_t{1} << unet.layers;
  user_check(options.image[0] % multiple == 0 && options.image[1] % multiple == 0,
             "unet halves the image {} times, so its sides must be multiples of {}, not {} x {}; "
             "choose fewer --layers or another --image",
             unet.layers, multiple, options.image[0], options.image[1]);
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.images();
  std::vector<ValueId> skips;
  int64_t channels = unet.hidden;
  for (int64_t i = 0; i < unet.layers; ++i, channels *= 2) {
    skips.push_back(block(net, fmt::format("down{}", i + 1), x, channels));
    x = b.op("max_pool", {skips.back()},
             {{"kernel", int64_t{2}}, {"stride", int64_t{2}}, {"pad", int64_t{0}}});
  }
  x = block(net, "bottom", x, channels);
  for (int64_t i = unet.layers; i-- > 0;) {
    channels /= 2;
    const Builder::Scope scope(b, fmt::format("up{}", i + 1));
    x = net.conv("reduce", b.op("upsample2d", {x}, {{"factor", int64_t{2}}}), channels, 1);
    x = b.op("concat", {skips[static_cast<size_t>(i)], x}, {{"axis", int64_t{3}}});
    x = block(net, "block", x, channels);
  }
  return net.classify(b.op("global_avg_pool", {x}));
}

}  // namespace

extern const ModelFamily family_unet{.pattern = "unet",
                                     .summary = "encoder and decoder with skips between them",
                                     .matches = matches,
                                     .batch = 32,
                                     .image = {32, 32, 3},
                                     .fields = fields,
                                     .build = build};

}  // namespace thimble
