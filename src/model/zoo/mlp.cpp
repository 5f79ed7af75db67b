// mlp: `layers` hidden layers of `hidden` units with ReLU, optional dropout, on flattened images.
#include "model/layers.h"

namespace thimble {
namespace {

bool matches(std::string_view name) { return name == "mlp"; }

void complete(ModelOptions& options) {
  if (options.batch == 0) options.batch = 100;
  if (options.image.rank() == 0) options.image = {8, 8, 1};
  if (options.classes == 0) options.classes = 10;
  if (options.layers == 0) options.layers = 2;
  if (options.hidden == 0) options.hidden = 256;
}

Model build(const ModelOptions& options) {
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.images();
  x = b.op("reshape", {x},
           {{"shape", std::vector<int64_t>{options.batch, options.image.elements()}}});
  for (int64_t i = 0; i < options.layers; ++i) {
    x = net.dropout(net.linear(fmt::format("hidden{}", i + 1), x, options.hidden, "relu"));
  }
  return net.finish(net.linear("classifier", x, options.classes));
}

}  // namespace

extern const ModelFamily family_mlp;
const ModelFamily family_mlp{"mlp", "fully connected net (--layers, --hidden, --dropout)", matches,
                             complete, build};

}  // namespace thimble
