// mlp: `layers` hidden layers of `hidden` units with ReLU, optional dropout, on flattened images.
#include "base/field.h"
#include "model/layers.h"

namespace thimble {
namespace {

struct Mlp {
  int64_t layers = 2;
  int64_t hidden = 256;
};

bool matches(std::string_view name) { return name == "mlp"; }

void fields(ModelOptions& options, Fields& list) {
  Mlp& mlp = own_of<Mlp>(options);
  list_layers(mlp.layers, list);
  list_hidden(mlp.hidden, list);
  list_dropout(options, list);
}

Model build(const ModelOptions& options) {
  const Mlp mlp = own_of<Mlp>(options);
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.images();
  x = b.op("reshape", {x},
           {{"shape", std::vector<int64_t>{options.batch, options.image.elements()}}});
  for (int64_t i = 0; i < mlp.layers; ++i) {
    x = net.dropout(net.linear(fmt::format("hidden{}", i + 1), x, mlp.hidden, "relu"));
  }
  return net.classify(x);
}

}  // namespace

extern const ModelFamily family_mlp{.pattern = "mlp",
                                    .summary = "fully connected net",
                                    .matches = matches,
                                    .batch = 100,
                                    .image = {8, 8, 1},
                                    .fields = fields,
                                    .build = build};

}  // namespace thimble
