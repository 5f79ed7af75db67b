// unet: an encoder that halves the image `layers` times and doubles the channels, a decoder that
// goes back up, and at every size a skip connection from one to the other (Ronneberger et al.
// 2015), with the mean over the last feature map as a classifier's input. The skips span the net:
// nowhere between the first and the last block does a single value cross.
#include "base/error.h"
#include "model/layers.h"

namespace thimble {
namespace {

bool matches(std::string_view name) { return name == "unet"; }

void complete(ModelOptions& options) {
  if (options.batch == 0) options.batch = 32;
  if (options.image.rank() == 0) options.image = {32, 32, 3};
  if (options.classes == 0) options.classes = 10;
  if (options.layers == 0) options.layers = 3;
  if (options.hidden == 0) options.hidden = 16;
}

// Two convolutions, each normalised and followed by relu.
ValueId block(Layers& net, std::string_view name, ValueId x, int64_t out) {
  const Builder::Scope scope(net.build(), name);
  x = net.norm("bn1", net.conv("conv1", x, out, 3), "relu");
  x = net.norm("bn2", net.conv("conv2", x, out, 3), "relu");
  return net.dropout(x);
}

Model build(const ModelOptions& options) {
  constexpr int64_t kMostHalvings = 10;
  user_check(options.layers <= kMostHalvings, "unet: --layers can be {} at most, not {}",
             kMostHalvings, options.layers);
  const int64_t multiple = int64_t{1} << options.layers;
  user_check(options.image[0] % multiple == 0 && options.image[1] % multiple == 0,
             "unet halves the image {} times, so its sides must be multiples of {}, not {} x {}; "
             "choose fewer --layers or another --image",
             options.layers, multiple, options.image[0], options.image[1]);
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.images();
  std::vector<ValueId> skips;
  int64_t channels = options.hidden;
  for (int64_t i = 0; i < options.layers; ++i, channels *= 2) {
    skips.push_back(block(net, fmt::format("down{}", i + 1), x, channels));
    x = b.op("max_pool", {skips.back()},
             {{"kernel", int64_t{2}}, {"stride", int64_t{2}}, {"pad", int64_t{0}}});
  }
  x = block(net, "bottom", x, channels);
  for (int64_t i = options.layers; i-- > 0;) {
    channels /= 2;
    const Builder::Scope scope(b, fmt::format("up{}", i + 1));
    x = net.conv("reduce", b.op("upsample2d", {x}, {{"factor", int64_t{2}}}), channels, 1);
    x = b.op("concat", {skips[static_cast<size_t>(i)], x}, {{"axis", int64_t{3}}});
    x = block(net, "block", x, channels);
  }
  return net.finish(net.linear("classifier", b.op("global_avg_pool", {x}), options.classes));
}

}  // namespace

extern const ModelFamily family_unet;
const ModelFamily family_unet{"unet",
                              "encoder and decoder with skips between them (--layers, --hidden)",
                              matches, complete, build};

}  // namespace thimble
