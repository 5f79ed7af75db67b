// lenet: two convolutions with max pooling and two dense layers (LeCun et al. 1998, with relu and max
// pooling in place of tanh and subsampling): a net for boards.
#include "base/error.h"
#include "base/field.h"
#include "model/layers.h"

namespace thimble {
namespace {

struct LeNet {
  int64_t hidden = 6;
};

bool matches(std::string_view name) { return name == "lenet"; }

void fields(ModelOptions& options, Fields& list) {
  list_hidden(own_of<LeNet>(options).hidden, list, "channels of the first convolution");
  list_dropout(options, list);
}

Model build(const ModelOptions& options) {
  user_check(options.image[0] % 4 == 0 && options.image[1] % 4 == 0,
             "lenet halves the image twice, so its sides must be multiples of 4, not {} x {}",
             options.image[0], options.image[1]);
  const int64_t channels = own_of<LeNet>(options).hidden;
  Layers net(options);
  Builder& b = net.build();
  ValueId x = net.images();
  for (int64_t i = 0; i < 2; ++i) {
    x = net.conv(fmt::format("conv{}", i + 1), x, channels + 10 * i, 5);
    x = b.op("relu", {b.op("max_pool", {x},
                           {{"kernel", int64_t{2}}, {"stride", int64_t{2}}, {"pad", int64_t{0}}})});
  }
  const int64_t pixels = options.image[0] / 4 * (options.image[1] / 4);
  x = b.op("reshape", {x},
           {{"shape", std::vector<int64_t>{options.batch, pixels * (channels + 10)}}});
  x = net.dropout(net.linear("hidden1", x, 120, "relu"));
  x = net.dropout(net.linear("hidden2", x, 84, "relu"));
  return net.classify(x);
}

}  // namespace

extern const ModelFamily family_lenet{.pattern = "lenet",
                                      .summary = "LeNet: two convolutions and two dense layers",
                                      .matches = matches,
                                      .batch = 32,
                                      .image = {8, 8, 1},
                                      .fields = fields,
                                      .build = build};

}  // namespace thimble
