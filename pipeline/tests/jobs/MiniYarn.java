import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler;

/**
 * Hadoop's resource manager and one node manager, in the working directory.
 *
 * <p>Writes the clients' configuration into the given directory, and runs until SIGTERM, which ends the containers too.
 */
public final class MiniYarn {
  private MiniYarn() {}

  public static void main(String[] arguments) throws Exception {
    Configuration settings = new YarnConfiguration();
    settings.setClass(YarnConfiguration.RM_SCHEDULER, FifoScheduler.class, ResourceScheduler.class);
    settings.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 64);
    settings.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, 4096);
    // The machine's memory and disks are shared with other tests.
    settings.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, false);
    settings.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    // The first check of the disks is made all the same.
    settings.setBoolean(YarnConfiguration.NM_DISK_HEALTH_CHECK_ENABLE, false);
    settings.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100);

    MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1);
    Runtime.getRuntime().addShutdownHook(new Thread(cluster::stop));
    cluster.init(settings);
    cluster.start();
    if (!cluster.waitForNodeManagersToConnect(60_000)) {
      throw new IllegalStateException("The node manager has not registered within 60 s");
    }
    try (OutputStream file = new FileOutputStream(Path.of(arguments[0], "yarn-site.xml").toFile())) {
      cluster.getConfig().writeXml(file);
    }
    Files.writeString(Path.of(arguments[0], "core-site.xml"), "<configuration/>");
    System.out.println("YARN is ready");
    new CountDownLatch(1).await();
  }
}
